-- A clock on which no work at all could be linked to a launch says nothing about steps: NULL, not 0. On a clock with
-- links a step without work launched nothing.
WITH clocks AS (
    SELECT
        work.run_id,
        work.device,
        work.clock_id,
        coalesce(any_value(runs.host_clock_id) = work.clock_id, false) AS shared
    FROM device_intervals AS work
    JOIN runs ON runs.run_id = work.run_id
    GROUP BY work.run_id, work.device, work.clock_id
),
linked AS (
    SELECT DISTINCT run_id, device, clock_id FROM device_intervals SEMI JOIN launches USING (run_id, correlation_id)
)
SELECT
    steps.run_id,
    steps.span_id,
    steps.name,
    steps.step_number,
    steps.occurrence,
    steps.start_ns,
    steps.duration_ns AS host_wall_ns,
    clocks.device,
    clocks.clock_id,
    CASE WHEN linked.run_id IS NOT NULL THEN coalesce(launched.interval_count, 0) END AS launched_intervals,
    CASE WHEN linked.run_id IS NOT NULL THEN coalesce(launched.busy_ns, 0) END AS launched_busy_ns,
    CASE WHEN linked.run_id IS NOT NULL THEN coalesce(launched.communication_ns, 0) END AS launched_communication_ns,
    CASE WHEN clocks.shared THEN coalesce(inside.busy_ns, 0) END AS window_busy_ns,
    CASE WHEN clocks.shared THEN steps.duration_ns - coalesce(inside.busy_ns, 0) END AS window_idle_ns
FROM _step_spans AS steps
LEFT JOIN clocks ON clocks.run_id = steps.run_id
LEFT JOIN linked
    ON linked.run_id = clocks.run_id AND linked.device = clocks.device AND linked.clock_id = clocks.clock_id
LEFT JOIN _step_launched AS launched
    ON launched.run_id = steps.run_id
    AND launched.span_id = steps.span_id
    AND launched.device = clocks.device
    AND launched.clock_id = clocks.clock_id
LEFT JOIN _step_window AS inside
    ON inside.run_id = steps.run_id
    AND inside.span_id = steps.span_id
    AND inside.device = clocks.device
    AND inside.clock_id = clocks.clock_id;

COMMENT ON VIEW step_breakdown IS
'Each step that a marker span of step_marker_rules delimits: its host time, the device work launched in it and the device work that ran during it. Device work often runs after the step that launched it. Grain: run_id, span_id, device, clock_id; a run without device work has one row a step, without a device.';
COMMENT ON COLUMN step_breakdown.run_id IS 'The run.';
COMMENT ON COLUMN step_breakdown.span_id IS 'The marker span.';
COMMENT ON COLUMN step_breakdown.name IS 'Its name, e.g. ProfilerStep#3.';
COMMENT ON COLUMN step_breakdown.step_number IS 'Last number in the name; NULL when it holds none.';
COMMENT ON COLUMN step_breakdown.occurrence IS 'Number of the span among those of its name in the run, from 1.';
COMMENT ON COLUMN step_breakdown.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN step_breakdown.host_wall_ns IS 'Host duration in nanoseconds.';
COMMENT ON COLUMN step_breakdown.device IS 'Device label; NULL in a run without device work.';
COMMENT ON COLUMN step_breakdown.clock_id IS 'Clock of the device work; NULL in a run without it.';
COMMENT ON COLUMN step_breakdown.launched_intervals IS
'Number of device intervals whose launch began in the step; NULL when no work of the clock has a launch.';
COMMENT ON COLUMN step_breakdown.launched_busy_ns IS
'Nanoseconds in which at least one of them ran, whenever that was; NULL as above.';
COMMENT ON COLUMN step_breakdown.launched_communication_ns IS
'Nanoseconds in which at least one of them of class communication ran; NULL as above.';
COMMENT ON COLUMN step_breakdown.window_busy_ns IS
'Nanoseconds of the step''s host window in which any work ran; NULL unless host and device share a clock.';
COMMENT ON COLUMN step_breakdown.window_idle_ns IS
'Nanoseconds of that window in which none ran; NULL unless host and device share a clock.';
