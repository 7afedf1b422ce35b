-- Only where the source itself puts host and device on one axis. The pieces of a clock do not overlap, so the busy time
-- up to an instant is what lies before the last piece that began by then, and of that piece what is over:
--
--   pieces      [==)   [====)
--   busy up to      2     2+2
--
-- The busy time of a window is the one up to its end minus the one up to its start: two look-ups a step.
WITH shared AS (
    SELECT run_id, host_clock_id FROM runs SEMI JOIN _step_spans USING (run_id) WHERE host_clock_id IS NOT NULL
),
reached AS (
    SELECT
        work.run_id,
        device,
        clock_id,
        start_ns::HUGEINT AS start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY work.run_id, device, clock_id
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_intervals AS work
    JOIN shared ON shared.run_id = work.run_id AND shared.host_clock_id = work.clock_id
    WHERE duration_ns > 0
),
pieces AS (
    SELECT
        run_id,
        device,
        clock_id,
        greatest(start_ns, coalesce(reached_ns, start_ns)) AS piece_start_ns,
        end_ns AS piece_end_ns,
        sum(piece_end_ns - piece_start_ns) OVER (
            PARTITION BY run_id, device, clock_id ORDER BY piece_start_ns ROWS UNBOUNDED PRECEDING
        ) AS busy_by_end_ns
    FROM reached
    WHERE reached_ns IS NULL OR end_ns > reached_ns
),
bounds AS (
    SELECT
        steps.run_id,
        span_id,
        device,
        clock_id,
        unnest([{at_ns: start_ns::HUGEINT, sign: -1}, {at_ns: end_ns, sign: 1}], recursive := true)
    FROM _step_spans AS steps
    JOIN (SELECT DISTINCT run_id, device, clock_id FROM pieces) AS clocks ON clocks.run_id = steps.run_id
),
looked_up AS (
    SELECT
        bounds.*,
        coalesce(busy_by_end_ns - greatest(piece_end_ns - at_ns, 0), 0) AS busy_by_now_ns
    FROM bounds
    ASOF LEFT JOIN pieces
        ON pieces.run_id = bounds.run_id
        AND pieces.device = bounds.device
        AND pieces.clock_id = bounds.clock_id
        AND bounds.at_ns >= pieces.piece_start_ns
)
SELECT run_id, span_id, device, clock_id, sum(sign * busy_by_now_ns) AS busy_ns
FROM looked_up
GROUP BY run_id, span_id, device, clock_id;

COMMENT ON VIEW _step_window IS
'Device work that ran inside the host window of a step, cut to it. Grain: run_id, span_id, device, clock_id; a clock on another axis than the host has no row.';
COMMENT ON COLUMN _step_window.run_id IS 'The run.';
COMMENT ON COLUMN _step_window.span_id IS 'Span of the step.';
COMMENT ON COLUMN _step_window.device IS 'Device label.';
COMMENT ON COLUMN _step_window.clock_id IS 'Clock that host and device share.';
COMMENT ON COLUMN _step_window.busy_ns IS 'Nanoseconds of the window in which at least one interval ran.';
