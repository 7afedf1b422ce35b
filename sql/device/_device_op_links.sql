-- The launch names the innermost operation around it where its reader could place it; otherwise the external id that
-- launch or work repeats does. Every interval has exactly one row, so sums over them are sums over the device.
SELECT
    work.run_id,
    work.seq,
    work.device,
    work.clock_id,
    work.start_ns,
    work.duration_ns,
    launch.seq AS launch_seq,
    coalesce(around.seq, named.seq) AS op_seq,
    coalesce(around.op_name, named.op_name) AS op_name,
    CASE
        WHEN coalesce(around.seq, named.seq) IS NOT NULL THEN NULL
        WHEN work.correlation_id IS NULL THEN 'no_correlation_id'
        WHEN launch.seq IS NULL THEN 'launch_not_recorded'
        ELSE 'launch_outside_operations'
    END AS unlinked_reason
FROM device_intervals AS work
LEFT JOIN _launch_index AS launch ON launch.run_id = work.run_id AND launch.correlation_id = work.correlation_id
LEFT JOIN ops AS around ON around.run_id = work.run_id AND around.seq = launch.op_seq
LEFT JOIN _external_ops AS named
    ON named.run_id = work.run_id AND named.external_id = coalesce(launch.external_id, work.external_id);

COMMENT ON VIEW _device_op_links IS 'Every device interval with the operation that launched it. Grain: run_id, seq.';
COMMENT ON COLUMN _device_op_links.run_id IS 'The run.';
COMMENT ON COLUMN _device_op_links.seq IS 'seq of the interval.';
COMMENT ON COLUMN _device_op_links.device IS 'Device label.';
COMMENT ON COLUMN _device_op_links.clock_id IS 'Clock of start_ns.';
COMMENT ON COLUMN _device_op_links.start_ns IS 'Start on the device clock, in nanoseconds.';
COMMENT ON COLUMN _device_op_links.duration_ns IS 'Duration in nanoseconds.';
COMMENT ON COLUMN _device_op_links.launch_seq IS 'seq of its launch; NULL when none was recorded.';
COMMENT ON COLUMN _device_op_links.op_seq IS 'seq of the operation; NULL when none is known.';
COMMENT ON COLUMN _device_op_links.op_name IS 'Name of the operation; NULL when none is known.';
COMMENT ON COLUMN _device_op_links.unlinked_reason IS
'Why no operation is known: no_correlation_id, launch_not_recorded or launch_outside_operations; NULL when one is.';
