-- The protocol keeps nodes of equal busy time in the order of its document, which sorts spans by id (1.4, 4.4).
SELECT
    busy.run_id,
    busy.span_id AS id,
    spans.name,
    busy.device,
    busy.clock_id,
    busy.busy_ns AS device_busy_ns,
    row_number() OVER (
        PARTITION BY busy.run_id ORDER BY busy.busy_ns DESC, busy.span_id, busy.device, busy.clock_id
    ) AS rank
FROM device_span_busy AS busy
JOIN _measured_subtree AS subtree USING (run_id, span_id)
JOIN spans ON spans.run_id = busy.run_id AND spans.id = busy.span_id;

COMMENT ON VIEW slowest_device IS
'Spans of the measured subtree, of any kind, ranked by the busy time of their own device work (protocol 4.4); every row, callers cut. Grain: run_id, id, device, clock_id; a span without device intervals has no row.';
COMMENT ON COLUMN slowest_device.run_id IS 'The run.';
COMMENT ON COLUMN slowest_device.id IS 'The span.';
COMMENT ON COLUMN slowest_device.name IS 'Semantic label of the span.';
COMMENT ON COLUMN slowest_device.device IS 'Device label.';
COMMENT ON COLUMN slowest_device.clock_id IS
'Clock of the intervals; times on two clocks are ranked side by side but never added.';
COMMENT ON COLUMN slowest_device.device_busy_ns IS 'Busy time on that clock, in nanoseconds.';
COMMENT ON COLUMN slowest_device.rank IS 'Place in its run, from 1: by busy time, then id, device and clock.';
