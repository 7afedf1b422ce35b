WITH observed AS (
    SELECT
        run_id,
        semantic_key AS label,
        count(*) AS occurrences,
        bool_and(qualifies) AS qualifies,
        count(*) FILTER (len(join_keys) > 0 AND gpu_operations = joined_operations) AS attributed
    FROM _projection_joins
    SEMI JOIN _correlated_runs USING (run_id)
    GROUP BY run_id, label
),
claims AS (
    SELECT run_id, label, bool_or(NOT cpu_only) AS expected, bool_or(cpu_only) AS cpu_only
    FROM _label_claims
    SEMI JOIN _correlated_runs USING (run_id)
    GROUP BY run_id, label
)
SELECT
    run_id,
    label,
    coalesce(expected, false) AS expected,
    coalesce(cpu_only, false) AS cpu_only,
    coalesce(occurrences, 0) AS occurrences,
    coalesce(attributed, 0) AS attributed,
    qualifies,
    CASE
        WHEN expected AND occurrences > 0 THEN 'matched'
        WHEN expected THEN 'missing_expected'
        WHEN cpu_only AND occurrences > 0 THEN 'unexpected_cpu_only'
        WHEN cpu_only THEN 'cpu_only'
        ELSE 'unexpected_observed'
    END AS state
FROM claims
FULL JOIN observed USING (run_id, label);

COMMENT ON VIEW semantic_label_ledger IS
'Labels that a contract declares, against those that projected ranges show (protocol 12.5). Labels are compared literally: a report that writes a domain before them never matches. Grain: run_id, label; a run without projected ranges has rows only if it is a folder of Nsight artifacts.';
COMMENT ON COLUMN semantic_label_ledger.run_id IS 'The run.';
COMMENT ON COLUMN semantic_label_ledger.label IS 'The label.';
COMMENT ON COLUMN semantic_label_ledger.expected IS 'The contract expects device work in it.';
COMMENT ON COLUMN semantic_label_ledger.cpu_only IS 'The contract says that it has host work alone.';
COMMENT ON COLUMN semantic_label_ledger.occurrences IS 'Projected ranges of that name; more than one is a duplicate.';
COMMENT ON COLUMN semantic_label_ledger.attributed IS 'Those of them that have a row in phase_attribution.';
COMMENT ON COLUMN semantic_label_ledger.qualifies IS
'False when a range of it declares no operations, or not as many as join it; NULL when it was not observed.';
COMMENT ON COLUMN semantic_label_ledger.state IS
'matched, missing_expected, unexpected_observed, unexpected_cpu_only, or cpu_only (as declared, not observed).';
