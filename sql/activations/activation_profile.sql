WITH hotspots AS (
    SELECT run_id, count(*) AS operations FROM activation_hotspots GROUP BY run_id
),
ambiguous AS (
    SELECT run_id, count(*) AS operations FROM _activation_operations WHERE ambiguous GROUP BY run_id
),
unattributed AS (
    SELECT run_id, count(*) AS storages FROM _activation_storages WHERE op_seq IS NULL GROUP BY run_id
)
SELECT
    region.run_id,
    coalesce(hotspots.operations, 0) AS operations,
    coalesce(ambiguous.operations, 0) AS ambiguous_operations,
    coalesce(unattributed.storages, 0) AS unattributed_activation_storages
FROM _measured_region AS region
LEFT JOIN hotspots USING (run_id)
LEFT JOIN ambiguous USING (run_id)
LEFT JOIN unattributed USING (run_id);

COMMENT ON VIEW activation_profile IS
'How much of the activations of a run could be linked to operations. Grain: run_id; runs without exactly one closed measured span have no row.';
COMMENT ON COLUMN activation_profile.run_id IS 'The run.';
COMMENT ON COLUMN activation_profile.operations IS 'Number of rows in activation_hotspots.';
COMMENT ON COLUMN activation_profile.ambiguous_operations IS
'Number of operations in the measured subtree whose output has tensor rows of different categories; a storage may still link them.';
COMMENT ON COLUMN activation_profile.unattributed_activation_storages IS
'Number of activation storages of the whole trace that no single operation could be given.';
