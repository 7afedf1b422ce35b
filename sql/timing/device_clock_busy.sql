-- A partition per clock, so that a filter on run_id reaches the scan. One window over keys packed from all clocks is
-- 1.8 times as fast over a whole store, and 7 times as slow for one of its 16 runs (benchmarks/views.py).
WITH reached AS (
    SELECT
        run_id,
        device,
        clock_id,
        start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_intervals
)
SELECT
    run_id,
    device,
    clock_id,
    count(*) AS interval_count,
    sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns
FROM reached
GROUP BY run_id, device, clock_id;

COMMENT ON VIEW device_clock_busy IS
'Busy time of a device on one of its clocks, over all streams and spans (protocol 4.2). Never added across clocks, never aligned to host time, never clipped to the measured region. Grain: run_id, device, clock_id; a clock without intervals has no row.';
COMMENT ON COLUMN device_clock_busy.run_id IS 'The run.';
COMMENT ON COLUMN device_clock_busy.device IS 'Device label.';
COMMENT ON COLUMN device_clock_busy.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN device_clock_busy.interval_count IS 'Number of recorded intervals.';
COMMENT ON COLUMN device_clock_busy.busy_ns IS
'Nanoseconds in which at least one interval ran; overlapping work counts once.';
