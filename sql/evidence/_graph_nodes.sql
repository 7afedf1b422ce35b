-- Spans and operations have host times; a tensor is no work and has none of its own (protocol 4.3 writes 0). What a
-- tensor node says beside its id comes from the first tensor event of that id (protocol 4.5).
--
-- A span may carry the id of another node. Both are rows here, and each picks up what hangs on the id of the other:
-- such a run has no graph, and whoever reads the rows in order sees two of one id.
WITH seen_tensors AS (
    SELECT run_id, tensor_id FROM tensors
    UNION
    SELECT run_id, unnest(inputs) FROM ops
    UNION
    SELECT run_id, output FROM ops WHERE output IS NOT NULL
),
first_events AS (
    SELECT
        run_id,
        tensor_id,
        arg_min(
            {span_id: span_id, label: label, shape: shape, dtype: dtype, device: device, dense_bytes: dense_bytes}, seq
        ) AS event
    FROM tensors
    GROUP BY run_id, tensor_id
)
SELECT
    nodes.run_id,
    nodes.node_id AS id,
    nodes.parent_id,
    nodes.name,
    nodes.node_kind AS kind,
    nodes.start_ns,
    nodes.host_self_time_ns,
    nodes.host_total_time_ns,
    ops.shape,
    ops.dtype,
    ops.device,
    memory.allocated_bytes,
    memory.peak_live_bytes,
    memory.residual_bytes,
    memory.dense_bytes
FROM host_self_time AS nodes
LEFT JOIN _op_nodes AS ops ON ops.run_id = nodes.run_id AND ops.node_id = nodes.node_id
LEFT JOIN node_memory AS memory ON memory.run_id = nodes.run_id AND memory.node_id = nodes.node_id
UNION ALL
SELECT
    seen_tensors.run_id,
    'tensor/' || seen_tensors.tensor_id,
    event.span_id,
    coalesce(event.label, seen_tensors.tensor_id),
    'tensor',
    NULL,
    0,
    0,
    event.shape,
    event.dtype,
    event.device,
    NULL,
    NULL,
    NULL,
    event.dense_bytes
FROM seen_tensors
LEFT JOIN first_events USING (run_id, tensor_id);

COMMENT ON VIEW _graph_nodes IS
'Spans, operations and tensors as nodes of one graph (protocol 4.5). Grain: run_id, id; a run where two nodes share an id has no graph.';
COMMENT ON COLUMN _graph_nodes.run_id IS 'The run.';
COMMENT ON COLUMN _graph_nodes.id IS
'Span id; span id, /op/ and the number of the operation in its span; or tensor/ and the tensor id.';
COMMENT ON COLUMN _graph_nodes.parent_id IS
'Enclosing span; NULL for a root, and for a tensor without a tensor event.';
COMMENT ON COLUMN _graph_nodes.name IS 'Semantic label, name of the operation, or label of the tensor, else its id.';
COMMENT ON COLUMN _graph_nodes.kind IS 'root, function, module, op or tensor.';
COMMENT ON COLUMN _graph_nodes.start_ns IS 'Start on the host clock, in nanoseconds; NULL for a tensor.';
COMMENT ON COLUMN _graph_nodes.host_self_time_ns IS 'Total without direct children, in nanoseconds; 0 for a tensor.';
COMMENT ON COLUMN _graph_nodes.host_total_time_ns IS 'Total host time in nanoseconds; 0 for a tensor.';
COMMENT ON COLUMN _graph_nodes.shape IS
'Output shape of an operation or shape of a tensor, an empty list for a scalar; NULL when not recorded.';
COMMENT ON COLUMN _graph_nodes.dtype IS 'Element type; NULL when not recorded.';
COMMENT ON COLUMN _graph_nodes.device IS 'Device of the output or tensor; NULL when not recorded.';
COMMENT ON COLUMN _graph_nodes.allocated_bytes IS 'As in node_memory; NULL for a tensor.';
COMMENT ON COLUMN _graph_nodes.peak_live_bytes IS 'As in node_memory; NULL for a tensor.';
COMMENT ON COLUMN _graph_nodes.residual_bytes IS 'As in node_memory; NULL for a tensor.';
COMMENT ON COLUMN _graph_nodes.dense_bytes IS
'Dense footprint of an output or tensor in bytes, not storage; NULL when not known.';
