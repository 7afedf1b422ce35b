-- A trace of which a part could not be read shows too little of everything, and no row says what is missing.
WITH losses AS (
    SELECT run_id, count(*) AS losses FROM ingest_issues WHERE severity = 'data_loss' GROUP BY run_id
)
SELECT
    run_id,
    'capture_incomplete' AS code,
    NULL::VARCHAR AS subject,
    CASE
        WHEN losses IS NULL THEN 'its reader gave no outcome: a part of the trace is missing'
        ELSE format('{} ingest issues are a loss of data: a part of the trace is missing', losses)
    END AS message
FROM runs
LEFT JOIN losses USING (run_id)
WHERE _is_foreign(source_format) AND (losses IS NOT NULL OR outcome IS NULL);

COMMENT ON VIEW _health_ingest_issues IS
'Foreign traces of which data was lost on the way into the store. Grain: run_id.';
COMMENT ON COLUMN _health_ingest_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_ingest_issues.code IS 'Always capture_incomplete.';
COMMENT ON COLUMN _health_ingest_issues.subject IS 'Always NULL: the run itself is meant.';
COMMENT ON COLUMN _health_ingest_issues.message IS 'What was found.';
