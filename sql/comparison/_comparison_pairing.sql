-- Item 11 of protocol 10.2: a walk over the baseline, then the candidate, that ends at its first problem. Within one
-- run a missing pair id or span comes before a repeated id; the sets are compared only after both walks.
WITH asked AS (
    SELECT comparison_id FROM _comparison_runs GROUP BY comparison_id HAVING count(pair_id) > 0
),
walked AS (
    SELECT
        r.*,
        row_number() OVER (PARTITION BY r.comparison_id, r.cohort, r.pair_id ORDER BY r.position) > 1 AS repeated
    FROM _comparison_runs AS r SEMI JOIN asked USING (comparison_id)
),
problems AS (
    SELECT
        comparison_id,
        arg_min(
            CASE
                WHEN pair_id IS NULL OR measured_closed_spans = 0 THEN 'pairing_incomplete'
                ELSE 'pair_ids_duplicated'
            END,
            run_order
        ) AS code,
        arg_min(cohort, run_order) AS cohort,
        arg_min(run_id, run_order) AS run_id
    FROM walked
    WHERE pair_id IS NULL OR measured_closed_spans = 0 OR repeated
    GROUP BY comparison_id
),
unequal AS (
    SELECT comparison_id
    FROM walked
    GROUP BY comparison_id, pair_id
    HAVING count(DISTINCT cohort) <> 2
)
SELECT
    a.comparison_id,
    coalesce(p.code, CASE WHEN u.comparison_id IS NOT NULL THEN 'pair_sets_mismatch' END) AS code,
    p.cohort,
    p.run_id
FROM asked AS a
LEFT JOIN problems AS p USING (comparison_id)
LEFT JOIN (SELECT DISTINCT comparison_id FROM unequal) AS u USING (comparison_id);

COMMENT ON VIEW _comparison_pairing IS
'Whether the runs of a comparison form pairs. Grain: comparison_id; only comparisons with a pair id.';
COMMENT ON COLUMN _comparison_pairing.comparison_id IS 'The comparison.';
COMMENT ON COLUMN _comparison_pairing.code IS 'First problem of the pairing; NULL for a full pairing.';
COMMENT ON COLUMN _comparison_pairing.cohort IS
'Cohort of the run with the problem; NULL when the sets differ, or for a full pairing.';
COMMENT ON COLUMN _comparison_pairing.run_id IS
'Run with the problem; NULL when the sets differ, or for a full pairing.';
