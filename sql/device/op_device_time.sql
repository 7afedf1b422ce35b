WITH reached AS (
    SELECT
        *,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id, op_seq, unlinked_reason
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM _device_op_links
)
SELECT
    run_id,
    device,
    clock_id,
    op_seq,
    any_value(op_name) AS op_name,
    unlinked_reason,
    count(*) AS interval_count,
    sum(duration_ns) AS total_ns,
    sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns
FROM reached
GROUP BY run_id, device, clock_id, op_seq, unlinked_reason;

COMMENT ON VIEW op_device_time IS
'Device time of each operation that launched work itself, by correlation id; operations inside it have rows of their own. The rest that no operation is known for has a row for each reason, so total_ns adds up to the sum of all device durations of the clock. Grain: run_id, device, clock_id, op_seq, unlinked_reason.';
COMMENT ON COLUMN op_device_time.run_id IS 'The run.';
COMMENT ON COLUMN op_device_time.device IS 'Device label.';
COMMENT ON COLUMN op_device_time.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN op_device_time.op_seq IS 'seq of the operation; NULL for unlinked work.';
COMMENT ON COLUMN op_device_time.op_name IS 'Name of the operation; NULL for unlinked work.';
COMMENT ON COLUMN op_device_time.unlinked_reason IS
'Why no operation is known: no_correlation_id, launch_not_recorded or launch_outside_operations; NULL for linked work.';
COMMENT ON COLUMN op_device_time.interval_count IS 'Number of intervals.';
COMMENT ON COLUMN op_device_time.total_ns IS 'Sum of their durations in nanoseconds.';
COMMENT ON COLUMN op_device_time.busy_ns IS
'Nanoseconds in which at least one of them ran; these do not add up over operations that overlap.';
