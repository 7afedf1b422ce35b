-- Both cohorts of every comparison, also the empty ones: an empty cohort is a finding, not an absence.
WITH named AS (
    SELECT comparison_id FROM comparisons
    UNION
    SELECT comparison_id FROM cohort_members
),
slots AS (
    SELECT n.comparison_id, s.cohort, s.cohort_order
    FROM named AS n CROSS JOIN (VALUES ('baseline', 0), ('candidate', 1)) AS s (cohort, cohort_order)
)
SELECT
    s.comparison_id,
    s.cohort,
    s.cohort_order,
    count(m.run_id) AS runs,
    count(m.run_id) FILTER (m.receipt_run_id IS NOT NULL OR m.manifest_sha256 IS NOT NULL) AS receipts,
    bool_or(coalesce(bool_or(NOT m.verified), false)) OVER (PARTITION BY s.comparison_id) AS unverified
FROM slots AS s LEFT JOIN cohort_members AS m USING (comparison_id, cohort)
GROUP BY s.comparison_id, s.cohort, s.cohort_order;

COMMENT ON VIEW _comparison_cohorts IS 'The two cohorts of each comparison. Grain: comparison_id, cohort.';
COMMENT ON COLUMN _comparison_cohorts.comparison_id IS 'The comparison.';
COMMENT ON COLUMN _comparison_cohorts.cohort IS 'baseline or candidate.';
COMMENT ON COLUMN _comparison_cohorts.cohort_order IS '0 for the baseline, 1 for the candidate.';
COMMENT ON COLUMN _comparison_cohorts.runs IS 'Number of runs in the cohort; 0 for an empty one.';
COMMENT ON COLUMN _comparison_cohorts.receipts IS 'Number of its runs that came with a verification receipt.';
COMMENT ON COLUMN _comparison_cohorts.unverified IS
'True when any run of the whole comparison was read from something else than a verified bundle.';
