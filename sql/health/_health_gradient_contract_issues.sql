-- A contract that is missing, out of place or invalid ends the judgement of that run. The two minimum rules stay silent
-- in a capture that is not complete unless every member of the family was observed: the rest may not have been reached.
WITH keys AS (
    FROM _health_gradient_keys
),
families AS (
    SELECT
        run_id,
        family,
        any_value(expectation) AS expectation,
        any_value(min_present) AS min_present,
        count(*) AS members,
        count(state) AS observed,
        count(*) FILTER (state = 'present') AS present,
        count(*) FILTER (state = 'non_finite') AS non_finite,
        count(*) FILTER (state <> 'missing') AS leaking,
        any_value(runs.outcome) IS NOT DISTINCT FROM 'complete' OR count(state) = count(*) AS minimum_applies
    FROM keys
    JOIN _gradient_families USING (run_id, family)
    JOIN runs USING (run_id)
    GROUP BY run_id, family
),
judged AS (
    SELECT run_id, NULL::VARCHAR AS subject, unnest([
        {code: 'gradient_contract_missing', message: CASE WHEN declared = 'complete' AND NOT contract_present
            THEN 'gradients are declared complete without a gradient contract; expected one' END},
        {code: 'gradient_contract_without_complete_coverage', message: CASE
            WHEN declared <> 'complete' AND contract_present
                THEN concat('a gradient contract with gradients declared ', declared, '; expected complete') END},
        {code: 'gradient_contract_invalid', message: CASE WHEN declared = 'complete' THEN fault END}
    ]) AS issue
    FROM _contract_gradient_valid
    UNION ALL
    SELECT run_id, concat(root, '/', key), unnest([
        {code: 'gradient_manifest_duplicate_key', message: CASE WHEN events > 1
            THEN format('{} events; expected 1', events) END},
        {code: 'gradient_manifest_undeclared_key', message: CASE WHEN family IS NULL
            THEN 'observed; expected only parameters of the manifest' END},
        {code: 'gradient_manifest_missing_key', message: CASE WHEN events = 0
            THEN 'no event; expected 1, as the manifest names it' END}
    ])
    FROM keys
    WHERE events <> 1 OR family IS NULL
    UNION ALL
    SELECT run_id, family, unnest([
        {code: 'gradient_family_non_finite', message: CASE WHEN non_finite > 0
            THEN format('{} of {} members are not finite; expected none', non_finite, members) END},
        {code: 'gradient_active_family_below_minimum', message: CASE
            WHEN expectation = 'active' AND present < min_present AND minimum_applies
                THEN format('{} of {} members are present; expected at least {}', present, members, min_present) END},
        {code: 'gradient_inactive_family_leakage', message: CASE WHEN expectation = 'inactive' AND leaking > 0
            THEN format('{} of {} members are not missing; expected all missing', leaking, members) END},
        {code: 'gradient_conditional_family_below_minimum', message: CASE
            WHEN expectation = 'data_conditional' AND present > 0 AND present < min_present AND minimum_applies
                THEN format('{} of {} members are present; expected none or at least {}', present, members, min_present)
        END}
    ])
    FROM families
)
SELECT run_id, issue.code AS code, subject, issue.message AS message
FROM judged
WHERE issue.message IS NOT NULL;

COMMENT ON VIEW _health_gradient_contract_issues IS
'Rules of the gradient contract that are broken (protocol 8.2). Grain: one run, parameter or family, and rule.';
COMMENT ON COLUMN _health_gradient_contract_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_gradient_contract_issues.code IS 'Health code.';
COMMENT ON COLUMN _health_gradient_contract_issues.subject IS
'The parameter, as root/key, or the family; NULL for the contract itself.';
COMMENT ON COLUMN _health_gradient_contract_issues.message IS 'What was found, and what was expected.';
