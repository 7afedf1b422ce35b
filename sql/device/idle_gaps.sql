-- A gap lies between everything that ran so far and the next start. What the device then waited for is seen on the host
-- only where host and device share an axis; there the launch of the work that ended the gap says it:
--
--   device    ===|.......gap.......|===
--   launch            [-)                launched_late: the host had not asked yet when the gap began
--   launch  [-)                          launched_before: the work was queued, and something else held it up
--
-- Work of length 0 ends no gap.
WITH reached AS (
    SELECT
        run_id, device, clock_id, seq, name, class, correlation_id, external_id, start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id
            ORDER BY start_ns, seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_work
    WHERE duration_ns > 0
),
gaps AS (
    SELECT
        * EXCLUDE (end_ns, reached_ns),
        reached_ns AS gap_start_ns,
        start_ns - reached_ns AS gap_ns,
        row_number() OVER (PARTITION BY run_id, device, clock_id ORDER BY reached_ns) AS gap
    FROM reached
    WHERE start_ns > reached_ns
)
SELECT
    gaps.run_id,
    gaps.device,
    gaps.clock_id,
    gaps.gap,
    gaps.gap_start_ns AS start_ns,
    gaps.gap_ns AS duration_ns,
    gaps.seq AS next_seq,
    gaps.name AS next_name,
    gaps.class AS next_class,
    CASE
        WHEN launch.seq IS NULL THEN 'unlaunched'
        WHEN runs.host_clock_id IS DISTINCT FROM gaps.clock_id THEN 'unknown'
        WHEN launch.start_ns > gaps.gap_start_ns THEN 'launched_late'
        ELSE 'launched_before'
    END AS host_state,
    launch.seq AS launch_seq,
    launch.name AS launch_name,
    launch.start_ns AS launch_start_ns,
    coalesce(around.seq, named.seq) AS op_seq,
    coalesce(around.op_name, named.op_name) AS op_name,
    spans.id AS span_id,
    spans.name AS span_name
FROM gaps
JOIN runs ON runs.run_id = gaps.run_id
LEFT JOIN _launch_index AS launch
    ON launch.run_id = gaps.run_id AND launch.correlation_id = gaps.correlation_id
LEFT JOIN ops AS around ON around.run_id = gaps.run_id AND around.seq = launch.op_seq
LEFT JOIN _external_ops AS named
    ON named.run_id = gaps.run_id AND named.external_id = coalesce(launch.external_id, gaps.external_id)
LEFT JOIN spans ON spans.run_id = gaps.run_id AND spans.id = launch.span_id;

COMMENT ON VIEW idle_gaps IS
'Times between the first start and the last end of a device clock in which nothing ran on it, with the launch of the work that ended each. Grain: run_id, device, clock_id, gap.';
COMMENT ON COLUMN idle_gaps.run_id IS 'The run.';
COMMENT ON COLUMN idle_gaps.device IS 'Device label.';
COMMENT ON COLUMN idle_gaps.clock_id IS 'Clock of the gap; two clocks cannot be compared.';
COMMENT ON COLUMN idle_gaps.gap IS 'Number of the gap on its clock, from 1 in the order of time.';
COMMENT ON COLUMN idle_gaps.start_ns IS 'Start on the device clock, in nanoseconds: the latest end so far.';
COMMENT ON COLUMN idle_gaps.duration_ns IS 'Duration in nanoseconds, more than 0.';
COMMENT ON COLUMN idle_gaps.next_seq IS 'seq of the interval that ended the gap.';
COMMENT ON COLUMN idle_gaps.next_name IS 'Its name; NULL when not recorded.';
COMMENT ON COLUMN idle_gaps.next_class IS 'Its class.';
COMMENT ON COLUMN idle_gaps.host_state IS
'launched_late: its launch began after the gap did; launched_before: its launch began by then; unlaunched: no launch shares its correlation id; unknown: its launch is on a clock that cannot be compared.';
COMMENT ON COLUMN idle_gaps.launch_seq IS 'seq of that launch; NULL when unlaunched.';
COMMENT ON COLUMN idle_gaps.launch_name IS 'Name of that launch; NULL when unlaunched.';
COMMENT ON COLUMN idle_gaps.launch_start_ns IS
'Its start on the host clock, in nanoseconds, comparable with start_ns unless host_state is unknown; NULL when unlaunched.';
COMMENT ON COLUMN idle_gaps.op_seq IS 'seq of the operation around the launch; NULL when none is known.';
COMMENT ON COLUMN idle_gaps.op_name IS 'Its name; NULL when none is known.';
COMMENT ON COLUMN idle_gaps.span_id IS 'Innermost span around the launch; NULL when none is known.';
COMMENT ON COLUMN idle_gaps.span_name IS 'Its name; NULL when none is known.';
