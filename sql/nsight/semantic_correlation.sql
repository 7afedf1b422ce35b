WITH counted AS (
    SELECT
        run_id,
        coalesce(sum(ledger.occurrences), 0)::BIGINT AS projected_ranges,
        count(*) FILTER (ledger.expected) AS expected,
        count(*) FILTER (ledger.state = 'matched') AS matched,
        count(*) FILTER (ledger.state = 'missing_expected') AS missing_expected,
        count(*) FILTER (ledger.state = 'unexpected_observed') AS unexpected_observed,
        count(*) FILTER (ledger.state = 'unexpected_cpu_only') AS unexpected_cpu_only,
        count(*) FILTER (ledger.occurrences > 1) AS duplicates,
        count(*) FILTER (ledger.state = 'matched' AND NOT ledger.qualifies) AS unqualified
    FROM _correlated_runs
    LEFT JOIN semantic_label_ledger AS ledger USING (run_id)
    GROUP BY run_id
)
SELECT
    run_id,
    CASE WHEN projected_ranges > 0 THEN 'nvtx_projected_range' ELSE 'none' END AS mode,
    false AS clock_aligned,
    projected_ranges > 0 AND expected > 0
        AND missing_expected + unexpected_observed + unexpected_cpu_only + duplicates + unqualified = 0 AS complete,
    projected_ranges,
    expected,
    matched,
    missing_expected,
    unexpected_observed,
    unexpected_cpu_only,
    duplicates,
    unqualified
FROM counted;

COMMENT ON VIEW semantic_correlation IS
'Whether the labels of a contract and the projected ranges of a profile agree (protocol 12.5). Grain: run_id; folders of Nsight artifacts, and runs with both labels and projected ranges.';
COMMENT ON COLUMN semantic_correlation.run_id IS 'The run.';
COMMENT ON COLUMN semantic_correlation.mode IS 'nvtx_projected_range, or none when no projected range was recorded.';
COMMENT ON COLUMN semantic_correlation.clock_aligned IS 'Always false: device times are never aligned to host times.';
COMMENT ON COLUMN semantic_correlation.complete IS
'True when labels are expected, every one of them was observed once and qualifies, and nothing else was observed.';
COMMENT ON COLUMN semantic_correlation.projected_ranges IS 'Number of projected ranges.';
COMMENT ON COLUMN semantic_correlation.expected IS 'Labels that the contract expects device work of.';
COMMENT ON COLUMN semantic_correlation.matched IS 'Expected labels that were observed.';
COMMENT ON COLUMN semantic_correlation.missing_expected IS 'Expected labels that were not.';
COMMENT ON COLUMN semantic_correlation.unexpected_observed IS 'Observed labels that the contract does not name.';
COMMENT ON COLUMN semantic_correlation.unexpected_cpu_only IS 'Observed labels that the contract says have no device work.';
COMMENT ON COLUMN semantic_correlation.duplicates IS 'Labels that were observed more than once.';
COMMENT ON COLUMN semantic_correlation.unqualified IS 'Expected labels with a range that does not qualify.';
