SELECT
    run_id,
    seq,
    semantic_key,
    clock_id,
    projected_start_ns,
    projected_duration_ns,
    gpu_busy_ns,
    gpu_operations AS gpu_operation_count,
    join_keys
FROM _projection_joins
WHERE len(join_keys) > 0 AND gpu_operations = joined_operations;

COMMENT ON VIEW phase_attribution IS
'Device time of a labelled range, only where the projection declares its operations and exactly as many join it by key and overlap (protocol 12.6). Phases that overlap are attributed independently, so their times do not add up. Grain: run_id, seq.';
COMMENT ON COLUMN phase_attribution.run_id IS 'The run.';
COMMENT ON COLUMN phase_attribution.seq IS 'seq of the projection.';
COMMENT ON COLUMN phase_attribution.semantic_key IS 'Label of the range.';
COMMENT ON COLUMN phase_attribution.clock_id IS 'Clock of the times; it is never aligned to the host.';
COMMENT ON COLUMN phase_attribution.projected_start_ns IS 'Start of the first device work in the range, in nanoseconds.';
COMMENT ON COLUMN phase_attribution.projected_duration_ns IS 'From there to the end of the last, in nanoseconds.';
COMMENT ON COLUMN phase_attribution.gpu_busy_ns IS
'Nanoseconds of the projected interval in which joined work ran; overlapping work counts once.';
COMMENT ON COLUMN phase_attribution.gpu_operation_count IS 'Device operations, as declared and as joined.';
COMMENT ON COLUMN phase_attribution.join_keys IS 'The keys that the join was made by.';
