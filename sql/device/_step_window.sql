-- Only where the source itself puts host and device on one axis. A range join alone, as in _step_launched.
WITH numbered AS (
    SELECT run_id, host_clock_id, row_number() OVER () AS run_number
    FROM runs
    SEMI JOIN _step_spans USING (run_id)
    WHERE host_clock_id IS NOT NULL
),
steps AS (
    SELECT
        span_id,
        (run_number::HUGEINT << 66) + start_ns AS start_ns,
        (run_number::HUGEINT << 66) + end_ns AS end_ns
    FROM _step_spans
    JOIN numbered USING (run_id)
),
work AS (
    SELECT
        run_id, device, clock_id,
        (run_number::HUGEINT << 66) + start_ns AS start_ns,
        (run_number::HUGEINT << 66) + start_ns + duration_ns AS end_ns
    FROM device_intervals
    JOIN numbered USING (run_id)
    WHERE clock_id = host_clock_id
),
clipped AS (
    SELECT
        run_id, span_id, device, clock_id,
        greatest(work.start_ns, steps.start_ns) AS start_ns,
        least(work.end_ns, steps.end_ns) AS end_ns
    FROM work
    JOIN steps ON work.start_ns < steps.end_ns AND work.end_ns > steps.start_ns
),
reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY run_id, span_id, device, clock_id
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM clipped
)
SELECT run_id, span_id, device, clock_id, sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns
FROM reached
GROUP BY run_id, span_id, device, clock_id;

COMMENT ON VIEW _step_window IS
'Device work that ran inside the host window of a step, cut to it. Grain: run_id, span_id, device, clock_id; a clock on another axis than the host has no row.';
COMMENT ON COLUMN _step_window.run_id IS 'The run.';
COMMENT ON COLUMN _step_window.span_id IS 'Span of the step.';
COMMENT ON COLUMN _step_window.device IS 'Device label.';
COMMENT ON COLUMN _step_window.clock_id IS 'Clock that host and device share.';
COMMENT ON COLUMN _step_window.busy_ns IS 'Nanoseconds of the window in which at least one interval ran.';
