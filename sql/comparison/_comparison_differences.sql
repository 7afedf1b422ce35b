-- IS DISTINCT FROM, because optional members are NULL on both sides when both runs leave them out; that is equality. A
-- capture fact that a foreign run does not state is no equality, so it is listed apart.
SELECT
    r.comparison_id,
    r.run_order,
    r.run_id,
    f.run_id AS first_run_id,
    list_filter([
        CASE WHEN r.semantics.entrypoint IS DISTINCT FROM f.semantics.entrypoint THEN 'entrypoint' END,
        CASE WHEN r.semantics.phase IS DISTINCT FROM f.semantics.phase THEN 'phase' END,
        CASE WHEN r.semantics.device IS DISTINCT FROM f.semantics.device THEN 'device' END,
        CASE WHEN r.semantics.timing_mode IS DISTINCT FROM f.semantics.timing_mode THEN 'timing_mode' END,
        CASE WHEN r.semantics.warmup_steps IS DISTINCT FROM f.semantics.warmup_steps THEN 'warmup_steps' END,
        CASE WHEN r.semantics.capture_step IS DISTINCT FROM f.semantics.capture_step THEN 'capture_step' END,
        CASE WHEN r.semantics.capture_contract IS DISTINCT FROM f.semantics.capture_contract
            THEN 'capture_contract' END,
        CASE WHEN r.semantics.measured_region_device_synchronized
            IS DISTINCT FROM f.semantics.measured_region_device_synchronized
            THEN 'measured_region_device_synchronized' END
    ], lambda name: name IS NOT NULL) AS semantics,
    CASE WHEN runs.run_id IS NULL THEN [] ELSE list_filter([
        CASE WHEN r.semantics.entrypoint IS NULL THEN 'entrypoint' END,
        CASE WHEN r.semantics.phase IS NULL THEN 'phase' END,
        CASE WHEN r.semantics.device IS NULL THEN 'device' END,
        CASE WHEN r.semantics.timing_mode IS NULL THEN 'timing_mode' END,
        CASE WHEN r.semantics.warmup_steps IS NULL THEN 'warmup_steps' END,
        CASE WHEN r.semantics.capture_step IS NULL THEN 'capture_step' END,
        CASE WHEN r.semantics.measured_region_device_synchronized IS NULL
            THEN 'measured_region_device_synchronized' END
    ], lambda name: name IS NOT NULL) END AS unstated,
    list_filter([
        CASE WHEN r.identity.workload_id IS DISTINCT FROM f.identity.workload_id THEN 'workload_id' END,
        CASE WHEN r.identity.model_id IS DISTINCT FROM f.identity.model_id THEN 'model_id' END,
        CASE WHEN r.identity.config_id IS DISTINCT FROM f.identity.config_id THEN 'config_id' END,
        CASE WHEN r.identity.data_id IS DISTINCT FROM f.identity.data_id THEN 'data_id' END,
        CASE WHEN r.identity.seed_policy IS DISTINCT FROM f.identity.seed_policy THEN 'seed_policy' END,
        CASE WHEN r.identity.physical_batch IS DISTINCT FROM f.identity.physical_batch THEN 'physical_batch' END,
        CASE WHEN r.identity.accumulation_steps IS DISTINCT FROM f.identity.accumulation_steps
            THEN 'accumulation_steps' END,
        CASE WHEN r.identity.precision IS DISTINCT FROM f.identity.precision THEN 'precision' END,
        CASE WHEN r.identity.device_state IS DISTINCT FROM f.identity.device_state THEN 'device_state' END
    ], lambda name: name IS NOT NULL) AS conditions
FROM _comparison_runs AS r
JOIN _comparison_runs AS f ON f.comparison_id = r.comparison_id AND f.run_order = 1
LEFT JOIN runs ON runs.run_id = r.run_id;

COMMENT ON VIEW _comparison_differences IS
'In what each run differs from the first run of its comparison. Grain: comparison_id, run_order.';
COMMENT ON COLUMN _comparison_differences.comparison_id IS 'The comparison.';
COMMENT ON COLUMN _comparison_differences.run_order IS 'Order of the run over the whole comparison, from 1.';
COMMENT ON COLUMN _comparison_differences.run_id IS 'The run.';
COMMENT ON COLUMN _comparison_differences.first_run_id IS
'First baseline run, or the first candidate run when there is no baseline.';
COMMENT ON COLUMN _comparison_differences.semantics IS
'Names of the capture facts that differ (protocol 10.2, item 8); empty when none does.';
COMMENT ON COLUMN _comparison_differences.unstated IS
'Names of the capture facts that a known run does not state at all (foreign traces only); empty when it states them.';
COMMENT ON COLUMN _comparison_differences.conditions IS
'Names of the identity members that differ (protocol 10.2, item 9); empty when none does.';
