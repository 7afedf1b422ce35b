-- The id of a hotspot is its span exactly when the operation is alone in a span of kind op. Only then are intervals on
-- the span intervals of the operation (guide, activation hotspots).
SELECT
    hotspot.run_id,
    hotspot.id,
    busy.device,
    busy.clock_id,
    busy.backends,
    busy.streams,
    busy.interval_count,
    busy.busy_ns,
    row_number() OVER (
        PARTITION BY hotspot.run_id, busy.device, busy.clock_id ORDER BY busy.busy_ns DESC, hotspot.id
    ) AS device_rank
FROM activation_hotspots AS hotspot
JOIN device_span_busy AS busy ON busy.run_id = hotspot.run_id AND busy.span_id = hotspot.span_id
WHERE hotspot.id = hotspot.span_id;

COMMENT ON VIEW activation_device_hotspots IS
'Device busy time of the operations that produce activations and are alone in a span of kind op, ranked per device clock (protocol 6.3). Never added across clocks. Grain: run_id, id, device, clock_id.';
COMMENT ON COLUMN activation_device_hotspots.run_id IS 'The run.';
COMMENT ON COLUMN activation_device_hotspots.id IS 'The dedicated span, which is the id of the operation.';
COMMENT ON COLUMN activation_device_hotspots.device IS 'Device label.';
COMMENT ON COLUMN activation_device_hotspots.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN activation_device_hotspots.backends IS 'What measured the intervals; sorted, each once.';
COMMENT ON COLUMN activation_device_hotspots.streams IS 'Streams or queues the work ran on; sorted, each once.';
COMMENT ON COLUMN activation_device_hotspots.interval_count IS 'Number of recorded intervals.';
COMMENT ON COLUMN activation_device_hotspots.busy_ns IS
'Nanoseconds in which at least one interval of the span ran; overlapping work counts once.';
COMMENT ON COLUMN activation_device_hotspots.device_rank IS
'Place on its device clock by busy_ns, from 1; equal values in the order of id.';
