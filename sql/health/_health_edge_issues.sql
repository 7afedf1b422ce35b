-- Known tensors are looked up from the edges outwards: runs without a data edge never unfold the inputs of their
-- operations.
WITH calls AS (
    SELECT
        edge.run_id,
        concat(from_span, '->', to_span) AS subject,
        from_span,
        host_duration_ns,
        caller.id IS NULL OR target.id IS NULL AS unknown,
        CASE WHEN caller.id IS NULL THEN from_span ELSE to_span END AS unknown_id,
        target.parent_id AS target_parent_id,
        target.duration_ns AS target_duration_ns
    FROM edges AS edge
    LEFT JOIN _health_span_index AS caller ON caller.run_id = edge.run_id AND caller.id = edge.from_span
    LEFT JOIN _health_span_index AS target ON target.run_id = edge.run_id AND target.id = edge.to_span
    WHERE edge_kind = 'call'
),
data_edges AS (
    SELECT run_id, concat(from_tensor, '->', to_tensor) AS subject, from_tensor, to_tensor
    FROM edges
    WHERE edge_kind = 'data'
),
tensor_ids AS (
    SELECT run_id, tensor_id FROM tensors SEMI JOIN data_edges USING (run_id)
    UNION ALL
    SELECT run_id, output FROM ops SEMI JOIN data_edges USING (run_id) WHERE output IS NOT NULL
    UNION ALL
    SELECT run_id, unnest(inputs) FROM ops SEMI JOIN data_edges USING (run_id)
),
endpoints AS (
    SELECT run_id, from_tensor AS tensor_id FROM data_edges
    UNION
    SELECT run_id, to_tensor FROM data_edges
),
unknown_endpoints AS (
    SELECT run_id, tensor_id FROM endpoints ANTI JOIN tensor_ids USING (run_id, tensor_id)
)
SELECT
    run_id,
    'unknown_call_edge_span' AS code,
    subject,
    concat('call edge names the span ', unknown_id, '; expected the id of a span') AS message
FROM calls
WHERE unknown
UNION ALL
SELECT
    run_id,
    'call_edge_hierarchy_mismatch',
    subject,
    concat('the parent of the called span is ', coalesce(target_parent_id, 'absent'), '; expected ', from_span)
FROM calls
WHERE NOT unknown AND target_parent_id IS DISTINCT FROM from_span
UNION ALL
SELECT
    run_id,
    'call_edge_duration_mismatch',
    subject,
    concat(host_duration_ns, ' ns; expected the duration of the called span, ', target_duration_ns, ' ns')
FROM calls
WHERE NOT unknown AND target_duration_ns IS NOT NULL AND host_duration_ns IS DISTINCT FROM target_duration_ns
UNION ALL
SELECT
    run_id,
    'empty_data_edge_endpoint',
    subject,
    concat('the ', CASE WHEN from_tensor = '' THEN 'source' ELSE 'target' END, ' tensor id is empty; expected an id')
FROM data_edges
WHERE from_tensor = '' OR to_tensor = ''
UNION ALL
SELECT
    data_edges.run_id,
    'unknown_data_edge_tensor',
    subject,
    concat(
        'tensor ', CASE WHEN source.tensor_id IS NULL THEN to_tensor ELSE from_tensor END,
        ' is not recorded; expected the id of a tensor, an operation input or an operation output'
    )
FROM data_edges
LEFT JOIN unknown_endpoints AS source ON source.run_id = data_edges.run_id AND source.tensor_id = from_tensor
LEFT JOIN unknown_endpoints AS target ON target.run_id = data_edges.run_id AND target.tensor_id = to_tensor
WHERE source.tensor_id IS NOT NULL OR target.tensor_id IS NOT NULL;

COMMENT ON VIEW _health_edge_issues IS 'Rules about call and data edges that are broken. Grain: one edge and rule.';
COMMENT ON COLUMN _health_edge_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_edge_issues.code IS 'Health code.';
COMMENT ON COLUMN _health_edge_issues.subject IS 'The edge, as from->to.';
COMMENT ON COLUMN _health_edge_issues.message IS 'What was found, and what was expected.';
