WITH reached AS (
    SELECT
        *,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id, op_name, unlinked_reason
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM _device_op_links
),
summed AS (
    SELECT
        run_id,
        device,
        clock_id,
        op_name,
        unlinked_reason,
        count(DISTINCT op_seq) AS op_count,
        count(*) AS interval_count,
        sum(duration_ns) AS total_ns,
        sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns
    FROM reached
    GROUP BY run_id, device, clock_id, op_name, unlinked_reason
)
SELECT *, total_ns / nullif(sum(total_ns) OVER (PARTITION BY run_id, device, clock_id), 0) AS share
FROM summed;

COMMENT ON VIEW op_name_device_time IS
'op_device_time by the name of the operation. total_ns adds up to the sum of all device durations of the clock. Grain: run_id, device, clock_id, op_name, unlinked_reason.';
COMMENT ON COLUMN op_name_device_time.run_id IS 'The run.';
COMMENT ON COLUMN op_name_device_time.device IS 'Device label.';
COMMENT ON COLUMN op_name_device_time.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN op_name_device_time.op_name IS 'Name of the operation; NULL for unlinked work.';
COMMENT ON COLUMN op_name_device_time.unlinked_reason IS
'Why no operation is known: no_correlation_id, launch_not_recorded or launch_outside_operations; NULL for linked work.';
COMMENT ON COLUMN op_name_device_time.op_count IS 'Number of operations of this name that launched work; 0 for unlinked work.';
COMMENT ON COLUMN op_name_device_time.interval_count IS 'Number of intervals.';
COMMENT ON COLUMN op_name_device_time.total_ns IS 'Sum of their durations in nanoseconds.';
COMMENT ON COLUMN op_name_device_time.busy_ns IS 'Nanoseconds in which at least one of them ran.';
COMMENT ON COLUMN op_name_device_time.share IS
'total_ns as a part of the sum over its device clock, from 0 to 1; NULL when that sum is 0.';
