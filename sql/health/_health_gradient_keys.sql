-- Only a valid contract that covers everything speaks about parameters; its manifest names each of them once. A key
-- that was observed twice is looked up by its first event (protocol 8.2).
WITH exact AS (
    SELECT run_id FROM _contract_gradient_valid WHERE declared = 'complete' AND contract_valid
),
observed AS (
    SELECT run_id, root, key, count(*) AS events, min_by(state, seq) AS state
    FROM gradients
    SEMI JOIN exact USING (run_id)
    GROUP BY run_id, root, key
),
expected AS (
    FROM _gradient_members SEMI JOIN exact USING (run_id)
)
SELECT run_id, root, key, family, coalesce(events, 0) AS events, state
FROM observed
FULL JOIN expected USING (run_id, root, key);

COMMENT ON VIEW _health_gradient_keys IS
'Every parameter that is observed or in the manifest, of runs with complete gradient coverage under a valid contract. Grain: run_id, root, key.';
COMMENT ON COLUMN _health_gradient_keys.run_id IS 'The run.';
COMMENT ON COLUMN _health_gradient_keys.root IS 'Parameter root.';
COMMENT ON COLUMN _health_gradient_keys.key IS 'Parameter key under the root.';
COMMENT ON COLUMN _health_gradient_keys.family IS 'Family of the parameter; NULL when the manifest does not name it.';
COMMENT ON COLUMN _health_gradient_keys.events IS 'Number of gradient facts about the parameter.';
COMMENT ON COLUMN _health_gradient_keys.state IS 'State of its first fact; NULL when none was observed.';
