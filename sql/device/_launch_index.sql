-- A runtime call may wrap a driver call of the same id; the outer one is where the host asked for the work.
SELECT run_id, correlation_id, seq, name, start_ns, duration_ns, external_id, span_id, op_seq
FROM launches
WHERE correlation_id IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY run_id, correlation_id ORDER BY start_ns, seq) = 1;

COMMENT ON VIEW _launch_index IS
'The launch that a correlation id means: the one that began first. Grain: run_id, correlation_id.';
COMMENT ON COLUMN _launch_index.run_id IS 'The run.';
COMMENT ON COLUMN _launch_index.correlation_id IS 'Id shared with the device work.';
COMMENT ON COLUMN _launch_index.seq IS 'Position of the launch in its source.';
COMMENT ON COLUMN _launch_index.name IS 'Name of the call.';
COMMENT ON COLUMN _launch_index.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN _launch_index.duration_ns IS 'Host duration in nanoseconds; NULL when not recorded.';
COMMENT ON COLUMN _launch_index.external_id IS 'Id of the operation around it; NULL when not recorded.';
COMMENT ON COLUMN _launch_index.span_id IS 'Innermost span around it; NULL: none.';
COMMENT ON COLUMN _launch_index.op_seq IS 'seq of the innermost operation around it; NULL: none.';
