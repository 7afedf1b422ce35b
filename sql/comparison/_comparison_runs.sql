SELECT
    m.comparison_id,
    m.cohort,
    (m.cohort = 'candidate')::INTEGER AS cohort_order,
    m.position,
    row_number() OVER (PARTITION BY m.comparison_id ORDER BY m.cohort, m.position) AS run_order,
    m.run_id,
    m.receipt_run_id,
    m.manifest_sha256,
    r.comparison_identity AS identity,
    r.comparison_identity.implementation_id AS implementation_id,
    r.comparison_identity.pair_id AS pair_id,
    {
        'entrypoint': r.entrypoint,
        'phase': r.phase,
        'device': r.device,
        'timing_mode': r.timing_mode,
        'warmup_steps': r.warmup_steps,
        'capture_step': r.capture_step,
        'capture_contract': r.capture_contract,
        'measured_region_device_synchronized': r.measured_region_device_synchronized
    } AS semantics,
    coalesce(s.spans, 0) AS measured_closed_spans,
    -- The protocol's sample of a run without the span is 0 (10.3); such a run is never comparable.
    coalesce(s.first_duration_ns, 0) AS outer_wall_time_ns
FROM cohort_members AS m
LEFT JOIN runs AS r ON r.run_id = m.run_id
LEFT JOIN _measured_closed_spans AS s ON s.run_id = m.run_id
WHERE m.cohort IN ('baseline', 'candidate');

COMMENT ON VIEW _comparison_runs IS
'What the comparison rules ask of each run. Grain: comparison_id, cohort, position.';
COMMENT ON COLUMN _comparison_runs.comparison_id IS 'The comparison.';
COMMENT ON COLUMN _comparison_runs.cohort IS 'baseline or candidate.';
COMMENT ON COLUMN _comparison_runs.cohort_order IS '0 for the baseline, 1 for the candidate.';
COMMENT ON COLUMN _comparison_runs.position IS 'Input order inside the cohort, from 0.';
COMMENT ON COLUMN _comparison_runs.run_order IS
'Order over the whole comparison from 1: the baseline, then the candidate.';
COMMENT ON COLUMN _comparison_runs.run_id IS 'The run.';
COMMENT ON COLUMN _comparison_runs.receipt_run_id IS 'Run id of the verification receipt; NULL without a receipt.';
COMMENT ON COLUMN _comparison_runs.manifest_sha256 IS 'Digest of the receipt; NULL without a receipt.';
COMMENT ON COLUMN _comparison_runs.identity IS
'Comparison identity of the run; NULL when it has none or the run is unknown.';
COMMENT ON COLUMN _comparison_runs.implementation_id IS 'Implementation id of the identity; NULL when it has none.';
COMMENT ON COLUMN _comparison_runs.pair_id IS 'Pair id of the identity; NULL when it has none.';
COMMENT ON COLUMN _comparison_runs.semantics IS
'What must be equal over all runs (protocol 10.2, item 8); members are NULL for an unknown run.';
COMMENT ON COLUMN _comparison_runs.measured_closed_spans IS 'Number of measured spans that ended.';
COMMENT ON COLUMN _comparison_runs.outer_wall_time_ns IS
'Sample in nanoseconds: duration of the first measured closed span; 0 without one.';
