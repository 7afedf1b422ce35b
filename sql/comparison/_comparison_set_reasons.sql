-- Items 6 to 9 of protocol 10.2: what holds over both cohorts together. Each row judges one comparison once.
WITH facts AS (
    SELECT
        c.comparison_id,
        min(c.runs) AS smaller,
        sum(c.runs) AS total
    FROM _comparison_cohorts AS c
    GROUP BY c.comparison_id
),
over_runs AS (
    SELECT
        r.comparison_id,
        count(DISTINCT r.run_id) AS distinct_runs,
        min(r.run_id) FILTER (r.identity IS NULL) AS without_identity,
        any_value(_comparison_identity_fault(r.identity)) FILTER (r.run_order = 1) AS first_problem
    FROM _comparison_runs AS r
    GROUP BY r.comparison_id
),
differing AS (
    SELECT
        comparison_id,
        arg_min(
            concat('run ', run_id, ' differs from ', first_run_id, ' in ', array_to_string(semantics, ', ')), run_order
        ) FILTER (len(semantics) > 0) AS semantics,
        arg_min(concat('run ', run_id, ' does not state ', array_to_string(unstated, ', ')), run_order)
            FILTER (len(unstated) > 0) AS unstated,
        arg_min(
            concat('run ', run_id, ' differs from ', first_run_id, ' in ', array_to_string(conditions, ', ')), run_order
        ) FILTER (len(conditions) > 0) AS conditions
    FROM _comparison_differences
    GROUP BY comparison_id
),
judged AS (
    SELECT f.*, o.* EXCLUDE (comparison_id), d.* EXCLUDE (comparison_id),
        f.smaller = 0 OR o.without_identity IS NOT NULL AS no_identity
    FROM facts AS f
    LEFT JOIN over_runs AS o ON o.comparison_id = f.comparison_id
    LEFT JOIN differing AS d ON d.comparison_id = f.comparison_id
)
SELECT j.comparison_id, c.item, c.code, c.message
FROM judged AS j,
LATERAL (
    VALUES
    (
        6, 'insufficient_runs', j.smaller < 5,
        format('the smaller cohort has {} runs; a comparison needs at least 5 in each', j.smaller)
    ),
    (
        7, 'duplicate_run_ids', coalesce(j.distinct_runs < j.total, false),
        format('{} runs have {} distinct run ids', j.total::BIGINT, coalesce(j.distinct_runs, 0))
    ),
    (8, 'no_runs', j.total = 0, 'both cohorts are empty'),
    (
        8, 'capture_semantics_mismatch',
        j.semantics IS NOT NULL OR j.unstated IS NOT NULL, coalesce(j.semantics, j.unstated)
    ),
    (
        9, 'identity_missing', j.no_identity,
        coalesce('run ' || j.without_identity || ' has no comparison identity', 'a cohort is empty')
    ),
    (
        9, 'identity_invalid', NOT j.no_identity AND j.first_problem IS NOT NULL,
        'the identity of the first run: ' || j.first_problem
    ),
    (
        9, 'identity_conditions_differ',
        NOT j.no_identity AND j.first_problem IS NULL AND j.conditions IS NOT NULL, j.conditions
    )
) AS c (item, code, applies, message)
WHERE c.applies;

COMMENT ON VIEW _comparison_set_reasons IS
'Reasons over both cohorts together (protocol 10.2, items 6 to 9). Grain: comparison_id, code.';
COMMENT ON COLUMN _comparison_set_reasons.comparison_id IS 'The comparison.';
COMMENT ON COLUMN _comparison_set_reasons.item IS 'Place among the groups of reasons.';
COMMENT ON COLUMN _comparison_set_reasons.code IS 'Stable code of the reason.';
COMMENT ON COLUMN _comparison_set_reasons.message IS 'The reason in words.';
