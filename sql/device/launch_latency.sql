SELECT
    work.run_id,
    work.seq,
    work.device,
    work.clock_id,
    work.stream_id,
    work.class,
    work.name,
    work.graph_id,
    launch.seq AS launch_seq,
    launch.name AS launch_name,
    launch.start_ns AS launch_start_ns,
    work.start_ns AS device_start_ns,
    work.start_ns::HUGEINT - launch.start_ns AS latency_ns,
    latency_ns < 0 AS starts_before_launch
FROM device_work AS work
JOIN runs ON runs.run_id = work.run_id AND runs.host_clock_id = work.clock_id
JOIN _launch_index AS launch ON launch.run_id = work.run_id AND launch.correlation_id = work.correlation_id;

COMMENT ON VIEW launch_latency IS
'From the start of a launch to the start of its device work, where the source puts both on one axis; elsewhere no such time exists. A launch of a device graph has one row for each piece of work it starts. Grain: run_id, seq.';
COMMENT ON COLUMN launch_latency.run_id IS 'The run.';
COMMENT ON COLUMN launch_latency.seq IS 'seq of the device interval.';
COMMENT ON COLUMN launch_latency.device IS 'Device label.';
COMMENT ON COLUMN launch_latency.clock_id IS 'Clock that host and device share.';
COMMENT ON COLUMN launch_latency.stream_id IS 'Stream or queue.';
COMMENT ON COLUMN launch_latency.class IS 'Class of the work.';
COMMENT ON COLUMN launch_latency.name IS 'Name of the work; NULL when not recorded.';
COMMENT ON COLUMN launch_latency.graph_id IS 'Device graph whose replay ran it; NULL when none or not recorded.';
COMMENT ON COLUMN launch_latency.launch_seq IS 'seq of the launch.';
COMMENT ON COLUMN launch_latency.launch_name IS 'Name of the launch.';
COMMENT ON COLUMN launch_latency.launch_start_ns IS 'Start of the launch, in nanoseconds.';
COMMENT ON COLUMN launch_latency.device_start_ns IS 'Start of the device work, in nanoseconds.';
COMMENT ON COLUMN launch_latency.latency_ns IS
'Their difference in nanoseconds; negative values are kept as the source has them.';
COMMENT ON COLUMN launch_latency.starts_before_launch IS
'True for a negative latency: the clocks of the source disagree, or the id was used again.';
