SELECT
    run_id,
    position,
    entry.family AS family,
    entry.expectation AS expectation,
    entry.min_present AS min_present
FROM (
    SELECT
        run_id,
        generate_subscripts(capture_contract.gradient_contract.families, 1) AS position,
        unnest(capture_contract.gradient_contract.families) AS entry
    FROM runs
);

COMMENT ON VIEW _gradient_families IS 'One family rule of the gradient contract of a capture. Grain: run_id, position.';
COMMENT ON COLUMN _gradient_families.run_id IS 'The run.';
COMMENT ON COLUMN _gradient_families.position IS 'Place of the rule in its list, from 1.';
COMMENT ON COLUMN _gradient_families.family IS 'Family the rule is about.';
COMMENT ON COLUMN _gradient_families.expectation IS 'active, inactive or data_conditional.';
COMMENT ON COLUMN _gradient_families.min_present IS
'Number of members that must be present for the expectation to hold.';
