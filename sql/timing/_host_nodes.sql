SELECT
    spans.run_id,
    spans.id AS node_id,
    spans.parent_id,
    true AS is_span,
    _span_node_kind(spans.parent_id, spans.span_kind) AS node_kind,
    spans.name,
    spans.seq,
    spans.start_ns,
    total.host_total_time_ns,
    spans.start_ns + total.host_total_time_ns AS end_ns
FROM spans
JOIN _span_host_total AS total ON total.run_id = spans.run_id AND total.span_id = spans.id
UNION ALL
SELECT
    run_id,
    node_id,
    span_id,
    false,
    'op',
    op_name,
    seq,
    timestamp_ns,
    duration_ns::HUGEINT,
    timestamp_ns::HUGEINT + duration_ns
FROM _op_nodes;

COMMENT ON VIEW _host_nodes IS
'Spans and operations as nodes with a host interval (protocol 4.3). Grain: run_id, node_id, is_span.';
COMMENT ON COLUMN _host_nodes.run_id IS 'The run.';
COMMENT ON COLUMN _host_nodes.node_id IS 'Span id, or the node id of an operation.';
COMMENT ON COLUMN _host_nodes.parent_id IS 'Enclosing span; NULL for a root, and for an operation outside any span.';
COMMENT ON COLUMN _host_nodes.is_span IS 'True for a span, false for an operation. A span of kind op is a span.';
COMMENT ON COLUMN _host_nodes.node_kind IS 'root, function, module or op.';
COMMENT ON COLUMN _host_nodes.name IS 'Semantic label of the span, or name of the operation.';
COMMENT ON COLUMN _host_nodes.seq IS 'Position of the record in its source.';
COMMENT ON COLUMN _host_nodes.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN _host_nodes.host_total_time_ns IS 'Total host time in nanoseconds; NULL when the end is not known.';
COMMENT ON COLUMN _host_nodes.end_ns IS 'Start and total host time together, in nanoseconds; NULL when the end is not known.';
