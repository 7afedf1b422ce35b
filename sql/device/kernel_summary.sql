-- The window adds what each call reaches past the earlier calls of its name, so overlapping calls count once in busy_ns
-- and twice in total_ns.
WITH reached AS (
    SELECT
        run_id, device, clock_id, class, name, start_ns, duration_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id, class, name
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_work
),
summed AS (
    SELECT
        run_id,
        device,
        clock_id,
        class,
        name,
        count(*) AS calls,
        sum(duration_ns) AS total_ns,
        min(duration_ns) AS min_ns,
        median(duration_ns) AS median_ns,
        max(duration_ns) AS max_ns,
        sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns
    FROM reached
    GROUP BY run_id, device, clock_id, class, name
)
SELECT
    *,
    total_ns / nullif(sum(total_ns) OVER (PARTITION BY run_id, device, clock_id), 0) AS share,
    row_number() OVER (
        PARTITION BY run_id, device, clock_id ORDER BY total_ns DESC, calls DESC, name, class
    ) AS rank
FROM summed;

COMMENT ON VIEW kernel_summary IS
'Device work summed up by name, copies and fills included. Grain: run_id, device, clock_id, class, name.';
COMMENT ON COLUMN kernel_summary.run_id IS 'The run.';
COMMENT ON COLUMN kernel_summary.device IS 'Device label.';
COMMENT ON COLUMN kernel_summary.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN kernel_summary.class IS 'Class of the work; a name that has several has a row for each.';
COMMENT ON COLUMN kernel_summary.name IS 'Name of the work; NULL for work without a recorded name.';
COMMENT ON COLUMN kernel_summary.calls IS 'Number of intervals.';
COMMENT ON COLUMN kernel_summary.total_ns IS
'Sum of their durations in nanoseconds; work that ran at the same time counts more than once.';
COMMENT ON COLUMN kernel_summary.min_ns IS 'Shortest duration in nanoseconds.';
COMMENT ON COLUMN kernel_summary.median_ns IS
'Median duration in nanoseconds; the mean of the middle two for an even number.';
COMMENT ON COLUMN kernel_summary.max_ns IS 'Longest duration in nanoseconds.';
COMMENT ON COLUMN kernel_summary.busy_ns IS 'Nanoseconds in which at least one of the intervals ran.';
COMMENT ON COLUMN kernel_summary.share IS
'total_ns as a part of the sum over its device clock, from 0 to 1; NULL when that sum is 0.';
COMMENT ON COLUMN kernel_summary.rank IS 'Place on its device clock, from 1: by total_ns, then calls, name and class.';
