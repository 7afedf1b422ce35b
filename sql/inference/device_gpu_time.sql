WITH summed AS (
    SELECT run_id, device, clock_id, clock_kind, sum(end_ns - start_ns) AS summed_ns, count(DISTINCT seq) AS activities
    FROM _busy_intervals
    GROUP BY ALL
),
busy AS (
    SELECT run_id, device, clock_id, clock_kind, sum(duration_ns) AS busy_ns FROM _busy_segments GROUP BY ALL
)
SELECT run_id, device, clock_id, clock_kind, summed_ns, coalesce(busy_ns, 0) AS busy_ns, activities AS activity_count
FROM summed
LEFT JOIN busy USING (run_id, device, clock_id, clock_kind);

COMMENT ON VIEW device_gpu_time IS
'Measured GPU time of a device clock, linked or not. Grain: run_id, device, clock_id, clock_kind; clocks are never merged.';
COMMENT ON COLUMN device_gpu_time.run_id IS 'The run.';
COMMENT ON COLUMN device_gpu_time.device IS 'Device: its UUID in what an engine recorded, its label in a trace.';
COMMENT ON COLUMN device_gpu_time.clock_id IS 'Clock of the times.';
COMMENT ON COLUMN device_gpu_time.clock_kind IS 'monotonic or device.';
COMMENT ON COLUMN device_gpu_time.summed_ns IS 'Sum over activities, in nanoseconds; what overlaps counts more than once.';
COMMENT ON COLUMN device_gpu_time.busy_ns IS 'Nanoseconds in which any activity ran.';
COMMENT ON COLUMN device_gpu_time.activity_count IS 'Measured activities.';
