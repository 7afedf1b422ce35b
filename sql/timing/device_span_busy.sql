WITH reached AS (
    SELECT
        run_id,
        span_id,
        device,
        clock_id,
        backend,
        stream_id,
        start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, span_id, device, clock_id
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_intervals
    WHERE span_id IS NOT NULL
)
SELECT
    run_id,
    span_id,
    device,
    clock_id,
    list(DISTINCT backend ORDER BY backend) AS backends,
    list(DISTINCT stream_id ORDER BY stream_id) AS streams,
    count(*) AS interval_count,
    sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS busy_ns
FROM reached
GROUP BY run_id, span_id, device, clock_id;

COMMENT ON VIEW device_span_busy IS
'Busy time of the device work recorded on one span, not on its descendants, over all streams (protocol 4.2). Never clipped to the measured region: it is another clock. Grain: run_id, span_id, device, clock_id; a span without intervals has no row, nor has work that names no span.';
COMMENT ON COLUMN device_span_busy.run_id IS 'The run.';
COMMENT ON COLUMN device_span_busy.span_id IS 'Span the work belongs to.';
COMMENT ON COLUMN device_span_busy.device IS 'Device label.';
COMMENT ON COLUMN device_span_busy.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN device_span_busy.backends IS 'What measured the intervals; sorted, each once.';
COMMENT ON COLUMN device_span_busy.streams IS 'Streams or queues the work ran on; sorted, each once.';
COMMENT ON COLUMN device_span_busy.interval_count IS 'Number of recorded intervals.';
COMMENT ON COLUMN device_span_busy.busy_ns IS
'Nanoseconds in which at least one interval ran; overlapping work counts once.';
