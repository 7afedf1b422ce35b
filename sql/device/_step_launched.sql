-- A range join alone, without an equality: the run is packed above the times. Beside an equality all launches of a run
-- would be compared with all its steps.
WITH numbered AS (
    SELECT run_id, row_number() OVER () AS run_number FROM (SELECT DISTINCT run_id FROM _step_spans)
),
steps AS (
    SELECT
        span_id,
        (run_number::HUGEINT << 66) + start_ns AS start_ns,
        (run_number::HUGEINT << 66) + end_ns AS end_ns
    FROM _step_spans
    JOIN numbered USING (run_id)
),
launched AS (
    SELECT
        work.run_id, work.device, work.clock_id, work.class, work.start_ns, work.duration_ns,
        (run_number::HUGEINT << 66) + launch.start_ns AS launch_ns
    FROM device_work AS work
    JOIN numbered ON numbered.run_id = work.run_id
    JOIN _launch_index AS launch ON launch.run_id = work.run_id AND launch.correlation_id = work.correlation_id
),
within AS (
    SELECT
        run_id, span_id, device, clock_id, class, launched.start_ns,
        launched.start_ns::HUGEINT + duration_ns AS end_ns
    FROM launched
    JOIN steps ON launch_ns >= steps.start_ns AND launch_ns < steps.end_ns
),
reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY run_id, span_id, device, clock_id
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, span_id, device, clock_id, class
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS class_reached_ns
    FROM within
)
SELECT
    run_id,
    span_id,
    device,
    clock_id,
    count(*) AS interval_count,
    sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns,
    coalesce(
        sum(_uncovered_ns(start_ns, end_ns, class_reached_ns)) FILTER (class = 'communication'), 0
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
