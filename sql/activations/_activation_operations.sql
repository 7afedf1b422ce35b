-- A tensor row classifies an operation only inside the operation's own span: backends use one tensor id again. Rows
-- that disagree classify nothing; one row of two may be the wrong one.
WITH outputs AS (
    SELECT run_id, span_id, tensor_id, min(category) AS category, min(category) <> max(category) AS ambiguous
    FROM tensors
    GROUP BY run_id, span_id, tensor_id
),
-- Any span of kind op can be dedicated, also one that is the root (its node kind is root then).
op_spans AS (
    SELECT DISTINCT run_id, id AS span_id FROM spans WHERE span_kind = 'op'
),
placed AS (
    SELECT *, count(*) OVER (PARTITION BY run_id, span_id) = 1 AS alone FROM _op_nodes
)
SELECT
    placed.run_id,
    placed.seq,
    CASE WHEN placed.alone AND op_spans.span_id IS NOT NULL THEN placed.span_id ELSE placed.node_id END AS id,
    placed.alone AND op_spans.span_id IS NOT NULL AS dedicated_span,
    placed.span_id,
    placed.op_index,
    placed.op_name,
    placed.output,
    placed.shape,
    placed.dtype,
    placed.device,
    placed.duration_ns,
    placed.output_dense_bytes,
    coalesce(outputs.category = 'activation' AND NOT outputs.ambiguous, false) AS tensor_output,
    coalesce(outputs.ambiguous, false) AS ambiguous
FROM placed
SEMI JOIN _measured_subtree AS subtree ON subtree.run_id = placed.run_id AND subtree.span_id = placed.span_id
LEFT JOIN op_spans ON op_spans.run_id = placed.run_id AND op_spans.span_id = placed.span_id
LEFT JOIN outputs
    ON outputs.run_id = placed.run_id AND outputs.span_id = placed.span_id AND outputs.tensor_id = placed.output;

COMMENT ON VIEW _activation_operations IS
'The operations of the measured subtree, and what the tensor rows of their outputs say. Grain: run_id, seq; runs without exactly one closed measured span have no row.';
COMMENT ON COLUMN _activation_operations.run_id IS 'The run.';
COMMENT ON COLUMN _activation_operations.seq IS 'Position of the record in its source.';
COMMENT ON COLUMN _activation_operations.id IS
'The span when the operation is alone in a span of kind op, otherwise the node id of the operation (protocol 6.2).';
COMMENT ON COLUMN _activation_operations.dedicated_span IS
'True when the operation is alone in a span of kind op; only then are the device intervals of the span its own.';
COMMENT ON COLUMN _activation_operations.span_id IS 'Span the operation ran in.';
COMMENT ON COLUMN _activation_operations.op_index IS 'Number of operations of this span before it, from 0.';
COMMENT ON COLUMN _activation_operations.op_name IS 'Name of the operation.';
COMMENT ON COLUMN _activation_operations.output IS 'Output tensor id; NULL when not recorded.';
COMMENT ON COLUMN _activation_operations.shape IS 'Output shape; an empty list is a scalar.';
COMMENT ON COLUMN _activation_operations.dtype IS 'Output element type.';
COMMENT ON COLUMN _activation_operations.device IS 'Device of the output.';
COMMENT ON COLUMN _activation_operations.duration_ns IS 'Host duration of the operation in nanoseconds.';
COMMENT ON COLUMN _activation_operations.output_dense_bytes IS
'Dense output footprint in bytes, not storage; NULL when the dtype is unknown.';
COMMENT ON COLUMN _activation_operations.tensor_output IS
'True when every tensor row of this span and output has the category activation, and there is one.';
COMMENT ON COLUMN _activation_operations.ambiguous IS
'True when two tensor rows of this span and output have different categories.';
