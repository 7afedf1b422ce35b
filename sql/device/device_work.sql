-- NULL = NULL here: work without a category or without a name is a kind of its own.
SELECT
    work.run_id,
    work.seq,
    work.device,
    work.clock_id,
    work.stream_id,
    kinds.class,
    work.category,
    work.name,
    work.start_ns,
    work.duration_ns,
    work.correlation_id,
    work.external_id,
    work.span_id,
    work.graph_id,
    work.bytes
FROM device_intervals AS work
JOIN _device_kinds AS kinds
    ON kinds.run_id = work.run_id
    AND kinds.name IS NOT DISTINCT FROM work.name
    AND kinds.category IS NOT DISTINCT FROM work.category;

COMMENT ON VIEW device_work IS
'Every device interval with its class, by the rules of device_class_rules. Grain: run_id, seq.';
COMMENT ON COLUMN device_work.run_id IS 'The run.';
COMMENT ON COLUMN device_work.seq IS 'Position of the interval in its source.';
COMMENT ON COLUMN device_work.device IS 'Device label.';
COMMENT ON COLUMN device_work.clock_id IS 'Clock of start_ns; two clocks cannot be compared.';
COMMENT ON COLUMN device_work.stream_id IS 'Stream or queue.';
COMMENT ON COLUMN device_work.class IS
'compute, communication, memcpy, memset or a class of the user''s own rules; other when no rule matches.';
COMMENT ON COLUMN device_work.category IS 'The source''s own class; NULL when it has none.';
COMMENT ON COLUMN device_work.name IS 'Name of the work, e.g. a kernel; NULL when not recorded.';
COMMENT ON COLUMN device_work.start_ns IS 'Start on the device clock, in nanoseconds.';
COMMENT ON COLUMN device_work.duration_ns IS 'Duration on the device clock, in nanoseconds.';
COMMENT ON COLUMN device_work.correlation_id IS 'Id shared with the launch; NULL when not recorded.';
COMMENT ON COLUMN device_work.external_id IS 'Id of the operation that launched it; NULL when not recorded.';
COMMENT ON COLUMN device_work.span_id IS 'Span the work belongs to; NULL when the source names none.';
COMMENT ON COLUMN device_work.graph_id IS 'Device graph whose replay ran it; NULL when none or not recorded.';
COMMENT ON COLUMN device_work.bytes IS 'Bytes moved or set by a copy or a fill; NULL for other work or when not recorded.';
