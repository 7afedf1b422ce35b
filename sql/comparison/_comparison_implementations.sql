-- Item 10 of protocol 10.2. The first rule that is broken speaks; an empty cohort has no implementation id.
WITH first_ids AS (
    SELECT comparison_id, cohort, arg_min(implementation_id, position) AS implementation_id
    FROM _comparison_runs
    GROUP BY comparison_id, cohort
),
judged AS (
    SELECT
        c.comparison_id,
        c.cohort,
        f.implementation_id,
        c.runs = 0 OR bool_or(r.implementation_id IS NULL) AS missing,
        bool_or(is_blank(r.implementation_id)) AS blank,
        bool_or(r.implementation_id <> f.implementation_id) AS inconsistent
    FROM _comparison_cohorts AS c
    LEFT JOIN _comparison_runs AS r USING (comparison_id, cohort)
    LEFT JOIN first_ids AS f USING (comparison_id, cohort)
    GROUP BY c.comparison_id, c.cohort, c.runs, f.implementation_id
)
SELECT
    comparison_id,
    cohort,
    CASE
        WHEN missing THEN 'implementation_id_missing'
        WHEN blank THEN 'implementation_id_empty'
        WHEN inconsistent THEN 'implementation_id_inconsistent'
    END AS code,
    CASE WHEN NOT (missing OR blank OR inconsistent) THEN implementation_id END AS implementation_id
FROM judged;

COMMENT ON VIEW _comparison_implementations IS
'The implementation id of each cohort, or what is wrong with it. Grain: comparison_id, cohort.';
COMMENT ON COLUMN _comparison_implementations.comparison_id IS 'The comparison.';
COMMENT ON COLUMN _comparison_implementations.cohort IS 'baseline or candidate.';
COMMENT ON COLUMN _comparison_implementations.code IS
'Code of the rule it breaks; NULL when every run has the same filled id.';
COMMENT ON COLUMN _comparison_implementations.implementation_id IS
'The common implementation id; NULL when a rule is broken.';
