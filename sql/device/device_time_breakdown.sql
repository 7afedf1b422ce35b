SELECT
    segments.run_id,
    segments.device,
    segments.clock_id,
    CASE segments.bits WHEN 0 THEN 'idle' ELSE string_agg(names.class, '+' ORDER BY names.class) END AS classes,
    count(names.class) AS class_count,
    segments.duration_ns,
    sum(segments.duration_ns) OVER (PARTITION BY segments.run_id, segments.device, segments.clock_id) AS window_ns,
    segments.duration_ns / window_ns AS share
FROM _device_class_segments AS segments
LEFT JOIN _device_class_bits AS names ON (segments.bits >> names.bit::INTEGER) & 1 = 1
GROUP BY segments.run_id, segments.device, segments.clock_id, segments.bits, segments.duration_ns;

COMMENT ON VIEW device_time_breakdown IS
'The window of a device clock, from its first start to its last end, cut up by which classes of work ran together: every nanosecond is in exactly one row. Work of length 0 widens no window. Grain: run_id, device, clock_id, classes; a clock without work of any length has no row.';
COMMENT ON COLUMN device_time_breakdown.run_id IS 'The run.';
COMMENT ON COLUMN device_time_breakdown.device IS 'Device label.';
COMMENT ON COLUMN device_time_breakdown.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN device_time_breakdown.classes IS
'The classes that ran at the same time, sorted and joined by +, e.g. communication+compute; idle when none ran.';
COMMENT ON COLUMN device_time_breakdown.class_count IS 'Number of these classes; 0 for idle.';
COMMENT ON COLUMN device_time_breakdown.duration_ns IS 'Nanoseconds in which exactly these classes ran.';
COMMENT ON COLUMN device_time_breakdown.window_ns IS 'Nanoseconds of the window: the sum over its rows.';
COMMENT ON COLUMN device_time_breakdown.share IS 'duration_ns as a part of window_ns, from 0 to 1.';
