-- Every metric has two parents: the activations contract says whether all producers are linked, and the metric's own
-- plane says whether its values are all there. A metric is declared complete where both are (decisions, Activations).
-- Protocol 7.2 then judges it by the operations that have the metric.
--
-- Dense bytes have no contract of their own; they count as complete when no linked operation lacks them. Logical memory
-- may stay partial when its policy keeps every activation: then each linked operation has a storage.
WITH device_timed AS (
    SELECT run_id, count(DISTINCT id) AS operations FROM activation_device_hotspots GROUP BY run_id
),
linked AS (
    SELECT
        run_id,
        count(*) AS operations,
        count(observed_host_duration_ns) AS host_operations,
        count(dense_output_bytes) AS dense_operations,
        count(logical_storage_count) AS storage_operations
    FROM activation_hotspots
    GROUP BY run_id
),
counted AS (
    SELECT
        runs.run_id,
        runs.schema AS trace_schema,
        health.structurally_valid,
        health.capture_complete,
        runs.capture_contract AS declared,
        region.run_id IS NOT NULL AS has_region,
        coalesce(linked.operations, 0) AS operations,
        coalesce(linked.host_operations, 0) AS host_operations,
        coalesce(linked.dense_operations, 0) AS dense_operations,
        coalesce(linked.storage_operations, 0) AS storage_operations,
        coalesce(device_timed.operations, 0) AS device_operations
    FROM runs
    JOIN run_health AS health USING (run_id)
    LEFT JOIN _measured_region AS region USING (run_id)
    LEFT JOIN linked USING (run_id)
    LEFT JOIN device_timed USING (run_id)
),
metrics AS (
    SELECT
        run_id,
        trace_schema,
        structurally_valid,
        capture_complete,
        declared.activations AS activations,
        has_region,
        operations,
        unnest([
            {field_order: 1, field: 'coverage', source: 'activation category links', has: 'an activation link',
                observed: operations, full_plane: true, lack: NULL},
            {field_order: 2, field: 'host_time', source: 'trace op events', has: 'a host duration',
                observed: host_operations, full_plane: host_operations = operations,
                lack: format('{} of {} operations have a host duration', host_operations, operations)},
            {field_order: 3, field: 'device_time', source: 'device intervals',
                has: 'device intervals of its own on a dedicated span', observed: device_operations,
                full_plane: declared.device_timing = 'complete',
                lack: 'device timing is declared ' || declared.device_timing},
            {field_order: 4, field: 'dense_output', source: 'dense output footprints', has: 'a dense output footprint',
                observed: dense_operations, full_plane: dense_operations = operations,
                lack: format('{} of {} operations have a dense output footprint', dense_operations, operations)},
            {field_order: 5, field: 'logical_memory', source: 'storage lifetime events',
                has: 'an activation storage of its own', observed: storage_operations,
                full_plane: declared.logical_memory = 'complete' OR (
                    declared.logical_memory = 'partial' AND storage_operations = operations AND operations > 0
                ),
                lack: format(
                    'logical memory is declared {}, and {} of {} operations have an activation storage',
                    declared.logical_memory, storage_operations, operations
                )}
        ]) AS metric
    FROM counted
),
levels AS (
    SELECT
        *,
        activations = 'complete' AND metric.full_plane AS promised,
        CASE
            WHEN promised THEN CASE WHEN metric.observed = 0 THEN 'invalid' ELSE 'complete' END
            ELSE CASE WHEN metric.observed = 0 THEN 'unavailable' ELSE 'partial' END
        END AS level
    FROM metrics
),
based AS (
    SELECT
        *,
        {
            level: level,
            source: CASE WHEN level = 'unavailable' THEN 'none' ELSE metric.source END,
            reason: CASE level
                WHEN 'complete' THEN format(
                    'declared complete, and observed on {} of {} activation operations', metric.observed, operations
                )
                WHEN 'partial' THEN CASE
                    WHEN activations = 'complete' THEN metric.lack
                    ELSE format('activations are declared {}: the ranking covers the observed sample', activations)
                END
                ELSE CASE WHEN level = 'invalid' THEN 'declared complete, but ' ELSE '' END || CASE
                    WHEN has_region THEN format('no activation operation has {}', metric.has)
                    ELSE 'without exactly one measured span that ended no operation qualifies'
                END
            END
        } AS state
    FROM levels
),
adjusted AS (
    SELECT
        run_id,
        metric.field AS field,
        metric.field_order AS field_order,
        _adjusted_state(state, trace_schema, structurally_valid, capture_complete) AS state
    FROM based
)
SELECT run_id, field, field_order, state.level AS level, state.source AS source, state.reason AS reason
FROM adjusted
UNION ALL
-- A checkpoint of a device names no operation, whatever was recorded (guide, activation hotspots).
SELECT
    run_id,
    'physical_memory_attribution',
    6,
    'unavailable',
    'none',
    'physical memory checkpoints name neither an operation nor an activation'
FROM runs;

COMMENT ON VIEW activation_capabilities IS
'What the rankings of activation_hotspots may claim (protocol 6.1): complete speaks for the whole measured region, partial for the observed sample. Six rows a run. Grain: run_id, field.';
COMMENT ON COLUMN activation_capabilities.run_id IS 'The run.';
COMMENT ON COLUMN activation_capabilities.field IS
'coverage (the links as a whole), host_time, device_time, dense_output, logical_memory (allocated bytes and byte-nanoseconds) or physical_memory_attribution.';
COMMENT ON COLUMN activation_capabilities.field_order IS 'Place in that list, from 1.';
COMMENT ON COLUMN activation_capabilities.level IS
'complete or partial: available; unavailable: not recorded; invalid: recorded in contradiction to its own rules.';
COMMENT ON COLUMN activation_capabilities.source IS 'What the level rests on; none when nothing does.';
COMMENT ON COLUMN activation_capabilities.reason IS 'Why the level is what it is, in words.';
