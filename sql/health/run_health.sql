WITH counted AS (
    SELECT
        run_id,
        count(*) FILTER (severity = 'error') AS error_count,
        count(*) FILTER (severity = 'warning') AS warning_count,
        bool_or(code = 'capture_incomplete') AS data_lost
    FROM health_issues
    GROUP BY run_id
)
SELECT
    runs.run_id,
    CASE WHEN outcome = 'complete' AND data_lost THEN 'interrupted' ELSE coalesce(outcome, 'interrupted') END AS outcome,
    coalesce(error_count, 0) = 0 AS structurally_valid,
    coalesce(outcome = 'complete' AND NOT coalesce(data_lost, false), false) AS capture_complete,
    coalesce(error_count, 0) AS error_count,
    coalesce(warning_count, 0) AS warning_count,
    CASE
        WHEN coalesce(error_count, 0) > 0 THEN 'invalid'
        WHEN outcome = 'complete' AND NOT coalesce(data_lost, false) THEN 'valid'
        ELSE 'failed'
    END AS status
FROM runs
LEFT JOIN counted USING (run_id);

COMMENT ON VIEW run_health IS 'Whether a run is structurally valid and complete (protocol 3). Grain: run_id.';
COMMENT ON COLUMN run_health.run_id IS 'The run.';
COMMENT ON COLUMN run_health.outcome IS
'complete, failed, or interrupted: no terminal record exists, or a part of a foreign trace was lost.';
COMMENT ON COLUMN run_health.structurally_valid IS 'True when no health issue is an error.';
COMMENT ON COLUMN run_health.capture_complete IS 'True when the outcome is complete and no data of a foreign trace was lost.';
COMMENT ON COLUMN run_health.error_count IS 'Number of health issues of severity error.';
COMMENT ON COLUMN run_health.warning_count IS 'Number of health issues of severity warning.';
COMMENT ON COLUMN run_health.status IS
'invalid: an error exists; failed: none, and the capture is not complete; valid: none, and it is complete.';
