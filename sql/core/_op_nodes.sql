-- An operation has no id of its own; its node id counts the operations of its span in stream order (protocol 4.3).
-- concat drops a NULL, so operations outside any span (foreign traces only) count among themselves: /op/0, /op/1, ...
SELECT
    run_id,
    seq,
    span_id,
    row_number() OVER (PARTITION BY run_id, span_id ORDER BY seq) - 1 AS op_index,
    concat(span_id, '/op/', op_index) AS node_id,
    op_name,
    inputs,
    output,
    shape,
    dtype,
    device,
    duration_ns,
    timestamp_ns,
    output_dense_bytes,
    input_dense_bytes
FROM ops;

COMMENT ON VIEW _op_nodes IS 'One executed operation with its place in its span (protocol 4.3). Grain: run_id, seq.';
COMMENT ON COLUMN _op_nodes.run_id IS 'The run.';
COMMENT ON COLUMN _op_nodes.seq IS 'Position of the record in its source.';
COMMENT ON COLUMN _op_nodes.span_id IS 'Span the operation ran in; NULL when none encloses it.';
COMMENT ON COLUMN _op_nodes.op_index IS
'Number of operations of this span, or outside any span, before it in stream order, from 0.';
COMMENT ON COLUMN _op_nodes.node_id IS
'Id of its node: span_id (nothing outside any span), /op/ and op_index. A span may carry the same id; health does not judge that.';
COMMENT ON COLUMN _op_nodes.op_name IS 'Name of the operation.';
COMMENT ON COLUMN _op_nodes.inputs IS 'Input tensor ids, in order; NULL when not recorded.';
COMMENT ON COLUMN _op_nodes.output IS 'Output tensor id; NULL when not recorded.';
COMMENT ON COLUMN _op_nodes.shape IS 'Output shape; an empty list is a scalar; NULL when not recorded.';
COMMENT ON COLUMN _op_nodes.dtype IS 'Output element type; NULL when not recorded.';
COMMENT ON COLUMN _op_nodes.device IS 'Device of the output; NULL when not recorded.';
COMMENT ON COLUMN _op_nodes.duration_ns IS 'Host duration in nanoseconds; NULL when not recorded.';
COMMENT ON COLUMN _op_nodes.timestamp_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN _op_nodes.output_dense_bytes IS
'Dense output footprint in bytes, not storage; NULL when the dtype is unknown.';
COMMENT ON COLUMN _op_nodes.input_dense_bytes IS
'Sum of the dense footprints of the inputs, in bytes; NULL when not recorded.';
