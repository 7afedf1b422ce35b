-- Counted from the intervals and measured from the segments: work of length 0 has a count and no segment.
WITH counted AS (
    SELECT run_id, device, clock_id, class, count(*) AS interval_count, sum(duration_ns) AS total_ns
    FROM device_work
    GROUP BY run_id, device, clock_id, class
),
measured AS (
    SELECT
        segments.run_id,
        segments.device,
        segments.clock_id,
        names.class,
        sum(segments.duration_ns) AS union_ns,
        coalesce(sum(segments.duration_ns) FILTER (bit_count(segments.bits) = 1), 0) AS exclusive_ns
    FROM _device_class_segments AS segments
    JOIN _device_class_bits AS names ON (segments.bits >> names.bit::INTEGER) & 1 = 1
    GROUP BY segments.run_id, segments.device, segments.clock_id, names.class
)
SELECT
    run_id,
    device,
    clock_id,
    class,
    interval_count,
    total_ns,
    coalesce(union_ns, 0) AS union_ns,
    coalesce(exclusive_ns, 0) AS exclusive_ns,
    coalesce(union_ns - exclusive_ns, 0) AS overlapped_ns
FROM counted
LEFT JOIN measured USING (run_id, device, clock_id, class);

COMMENT ON VIEW device_class_time IS
'The time of each class of work on a device clock: alone, beside other classes, and both. Grain: run_id, device, clock_id, class; a class without work has no row.';
COMMENT ON COLUMN device_class_time.run_id IS 'The run.';
COMMENT ON COLUMN device_class_time.device IS 'Device label.';
COMMENT ON COLUMN device_class_time.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN device_class_time.class IS 'The class.';
COMMENT ON COLUMN device_class_time.interval_count IS 'Number of intervals.';
COMMENT ON COLUMN device_class_time.total_ns IS
'Sum of their durations in nanoseconds; work that ran at the same time counts more than once.';
COMMENT ON COLUMN device_class_time.union_ns IS
'Nanoseconds in which the class ran; exclusive_ns and overlapped_ns together.';
COMMENT ON COLUMN device_class_time.exclusive_ns IS 'Nanoseconds in which no other class ran.';
COMMENT ON COLUMN device_class_time.overlapped_ns IS 'Nanoseconds in which another class ran too.';
