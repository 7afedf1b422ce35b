SELECT run_id, position, entry.root AS root, entry.key AS key, entry.family AS family
FROM (
    SELECT
        run_id,
        generate_subscripts(capture_contract.gradient_contract.expected, 1) AS position,
        unnest(capture_contract.gradient_contract.expected) AS entry
    FROM runs
);

COMMENT ON VIEW _gradient_members IS
'One entry of the gradient manifest of a capture contract. Grain: run_id, position.';
COMMENT ON COLUMN _gradient_members.run_id IS 'The run.';
COMMENT ON COLUMN _gradient_members.position IS 'Place of the entry in the manifest, from 1.';
COMMENT ON COLUMN _gradient_members.root IS 'Parameter root.';
COMMENT ON COLUMN _gradient_members.key IS 'Parameter key under the root.';
COMMENT ON COLUMN _gradient_members.family IS 'Family the parameter belongs to.';
