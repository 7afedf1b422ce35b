-- Every start and end of a step is a bound; between two bounds a launch is in the same steps, whichever it is. So a
-- launch is located once, at the last bound before it, and steps that overlap all get it.
WITH bounds AS (
    SELECT DISTINCT run_id, unnest([start_ns::HUGEINT, end_ns]) AS at_ns FROM _step_spans
),
covered AS (
    SELECT bounds.run_id, bounds.at_ns, steps.span_id
    FROM bounds
    JOIN _step_spans AS steps
        ON steps.run_id = bounds.run_id AND steps.start_ns <= bounds.at_ns AND steps.end_ns > bounds.at_ns
),
launched AS (
    SELECT
        work.run_id,
        work.device,
        work.clock_id,
        work.class,
        work.start_ns,
        work.duration_ns,
        launch.start_ns::HUGEINT AS launch_ns
    FROM device_work AS work
    JOIN _launch_index AS launch ON launch.run_id = work.run_id AND launch.correlation_id = work.correlation_id
),
located AS (
    SELECT launched.*, bounds.at_ns
    FROM launched
    ASOF JOIN bounds ON bounds.run_id = launched.run_id AND launched.launch_ns >= bounds.at_ns
),
reached AS (
    SELECT
        located.run_id,
        span_id,
        device,
        clock_id,
        class = 'communication' AS communicates,
        start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER earlier AS reached_ns,
        max(end_ns) FILTER (class = 'communication') OVER earlier AS communication_reached_ns
    FROM located
    JOIN covered ON covered.run_id = located.run_id AND covered.at_ns = located.at_ns
    WINDOW earlier AS (
        PARTITION BY located.run_id, span_id, device, clock_id
        ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
SELECT
    run_id,
    span_id,
    device,
    clock_id,
    count(*) AS interval_count,
    sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns,
    coalesce(
        sum(_uncovered_ns(start_ns, end_ns, communication_reached_ns)) FILTER (communicates), 0
    ) AS communication_ns
FROM reached
GROUP BY run_id, span_id, device, clock_id;

COMMENT ON VIEW _step_launched IS
'The device work that was launched in a step, on any thread. Grain: run_id, span_id, device, clock_id.';
COMMENT ON COLUMN _step_launched.run_id IS 'The run.';
COMMENT ON COLUMN _step_launched.span_id IS 'Span of the step.';
COMMENT ON COLUMN _step_launched.device IS 'Device label.';
COMMENT ON COLUMN _step_launched.clock_id IS 'Clock of the intervals.';
COMMENT ON COLUMN _step_launched.interval_count IS 'Number of intervals whose launch began in [start, end) of the step.';
COMMENT ON COLUMN _step_launched.busy_ns IS 'Nanoseconds in which at least one of them ran.';
COMMENT ON COLUMN _step_launched.communication_ns IS
'Nanoseconds in which at least one of them of class communication ran.';
