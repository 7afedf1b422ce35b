-- Only where the source itself puts host and device on one axis. The pieces of a clock do not overlap, so the busy time
-- up to an instant is the length of all pieces that began by then, less what of the last one is still to come:
--
--   pieces      [==)   [====)
--   busy up to      2     6-2
--
-- The busy time of a window is the one up to its end minus the one up to its start. One walk over the pieces and all
-- these instants finds them; a piece that begins at the instant itself adds its length and takes it back.
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
clocks AS (
    SELECT DISTINCT work.run_id, device, clock_id
    FROM device_intervals AS work
    JOIN shared ON shared.run_id = work.run_id AND shared.host_clock_id = work.clock_id
),
instants AS (
    SELECT
        run_id, device, clock_id,
        greatest(start_ns, coalesce(reached_ns, start_ns)) AS at_ns,
        end_ns,
        NULL AS span_id,
        NULL AS sign
    FROM reached
    WHERE reached_ns IS NULL OR end_ns > reached_ns
    UNION ALL
    SELECT clocks.run_id, device, clock_id, bound.at_ns, NULL, span_id, bound.sign
    FROM clocks
    JOIN (
        SELECT run_id, span_id, unnest([{at_ns: start_ns::HUGEINT, sign: -1}, {at_ns: end_ns, sign: 1}]) AS bound
        FROM _step_spans
    ) AS steps ON steps.run_id = clocks.run_id
),
walked AS (
    SELECT
        run_id, device, clock_id, span_id, sign,
        coalesce(sum(end_ns - at_ns) OVER earlier, 0) - greatest(max(end_ns) OVER earlier - at_ns, 0) AS busy_ns
    FROM instants
    WINDOW earlier AS (PARTITION BY run_id, device, clock_id ORDER BY at_ns ROWS UNBOUNDED PRECEDING)
)
SELECT run_id, span_id, device, clock_id, sum(sign * busy_ns) AS busy_ns
FROM walked
WHERE span_id IS NOT NULL
GROUP BY run_id, span_id, device, clock_id;

COMMENT ON VIEW _step_window IS
'Device work that ran inside the host window of a step, cut to it. Grain: run_id, span_id, device, clock_id; a clock on another axis than the host has no row.';
COMMENT ON COLUMN _step_window.run_id IS 'The run.';
COMMENT ON COLUMN _step_window.span_id IS 'Span of the step.';
COMMENT ON COLUMN _step_window.device IS 'Device label.';
COMMENT ON COLUMN _step_window.clock_id IS 'Clock that host and device share.';
COMMENT ON COLUMN _step_window.busy_ns IS 'Nanoseconds of the window in which at least one interval ran.';
