-- Recorded edges first, then the calls that nesting implies, then what each operation implies: that order decides which
-- edge stands for an end pair and kind that several name (protocol 4.5). An operation that reads a tensor twice has one
-- edge from it.
WITH named AS (
    SELECT
        run_id,
        edge_kind AS kind,
        coalesce(from_span, 'tensor/' || from_tensor) AS from_id,
        coalesce(to_span, 'tensor/' || to_tensor) AS to_id,
        host_duration_ns::HUGEINT AS host_duration_ns,
        NULL AS label,
        1 AS origin,
        seq
    FROM edges
    UNION ALL
    SELECT run_id, 'call', parent_id, node_id, host_total_time_ns, NULL, 2, seq
    FROM host_self_time
    WHERE parent_id IS NOT NULL AND node_kind <> 'op'
    UNION ALL
    SELECT run_id, 'call', span_id, node_id, duration_ns, op_name, 3, seq FROM _op_nodes
    UNION ALL
    SELECT run_id, 'data', 'tensor/' || unnest(inputs), node_id, NULL, 'input', 3, seq FROM _op_nodes
    UNION ALL
    SELECT run_id, 'data', node_id, 'tensor/' || output, NULL, 'output', 3, seq
    FROM _op_nodes
    WHERE output IS NOT NULL
),
firsts AS (
    SELECT
        run_id,
        kind,
        from_id,
        to_id,
        arg_min({host_duration_ns: host_duration_ns, label: label}, (origin, seq)) AS edge
    FROM named
    GROUP BY run_id, kind, from_id, to_id
)
SELECT
    run_id,
    kind,
    from_id,
    to_id,
    edge.host_duration_ns AS host_duration_ns,
    edge.label AS label
FROM firsts;

COMMENT ON VIEW _graph_edges IS
'Recorded and implied call and data edges between graph nodes (protocol 4.5). Grain: run_id, kind, from_id, to_id.';
COMMENT ON COLUMN _graph_edges.run_id IS 'The run.';
COMMENT ON COLUMN _graph_edges.kind IS 'call or data.';
COMMENT ON COLUMN _graph_edges.from_id IS 'Node the edge leaves.';
COMMENT ON COLUMN _graph_edges.to_id IS 'Node the edge reaches.';
COMMENT ON COLUMN _graph_edges.host_duration_ns IS 'Duration of the call in nanoseconds; NULL for a data edge.';
COMMENT ON COLUMN _graph_edges.label IS
'Name of the called operation, input or output; NULL for a recorded edge and for a call between spans.';
