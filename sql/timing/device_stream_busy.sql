WITH reached AS (
    SELECT
        run_id,
        device,
        clock_id,
        stream_id,
        start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id, stream_id
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_intervals
)
SELECT
    run_id,
    device,
    clock_id,
    stream_id,
    count(*) AS interval_count,
    sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns
FROM reached
GROUP BY run_id, device, clock_id, stream_id;

COMMENT ON VIEW device_stream_busy IS
'Busy time of one stream of a device (protocol 4.1). Streams overlap: their sum is not the busy time of the device. Grain: run_id, device, clock_id, stream_id.';
COMMENT ON COLUMN device_stream_busy.run_id IS 'The run.';
COMMENT ON COLUMN device_stream_busy.device IS 'Device label.';
COMMENT ON COLUMN device_stream_busy.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN device_stream_busy.stream_id IS 'Stream or queue.';
COMMENT ON COLUMN device_stream_busy.interval_count IS 'Number of recorded intervals.';
COMMENT ON COLUMN device_stream_busy.busy_ns IS
'Nanoseconds in which at least one interval of the stream ran; overlapping work counts once.';
