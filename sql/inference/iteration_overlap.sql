SELECT run_id, device, clock_id, clock_kind, iterations, sum(duration_ns) AS shared_ns
FROM _busy_segments
WHERE len(iterations) > 1
GROUP BY ALL;

COMMENT ON VIEW iteration_overlap IS
'Busy time that several iterations own together; each nanosecond has one row. Exclusive time of iterations, this, and unattributed_gpu_time add up to the busy time of the clock. Grain: run_id, device, clock_id, clock_kind, iterations.';
COMMENT ON COLUMN iteration_overlap.run_id IS 'The run.';
COMMENT ON COLUMN iteration_overlap.device IS 'Device: its UUID in what an engine recorded, its label in a trace.';
COMMENT ON COLUMN iteration_overlap.clock_id IS 'Clock of the times.';
COMMENT ON COLUMN iteration_overlap.clock_kind IS 'monotonic or device.';
COMMENT ON COLUMN iteration_overlap.iterations IS 'The iterations, sorted.';
COMMENT ON COLUMN iteration_overlap.shared_ns IS 'Nanoseconds in which all of them ran, and no other.';
