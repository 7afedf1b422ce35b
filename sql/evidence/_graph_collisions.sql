-- Ids of spans are data; those of operations (<span>/op/<n>) and tensors (tensor/<id>) are made. Two spans never share an
-- id in a valid run and two operations never do, so an id can only be claimed twice by a span that looks like one of
-- the made ids, or by an operation of a span that looks like a tensor. Few nodes do; only those are looked up.
WITH claimants AS (
    SELECT run_id, id, _span_node_kind(parent_id, span_kind) AS kind
    FROM spans
    WHERE contains(id, '/op/') OR starts_with(id, 'tensor/')
    UNION ALL
    SELECT run_id, node_id, 'op' FROM _op_nodes WHERE starts_with(node_id, 'tensor/')
),
-- Only runs with a claimant: the other runs' tensors need no look.
seen_tensors AS (
    SELECT run_id, tensor_id FROM tensors SEMI JOIN claimants USING (run_id)
    UNION ALL
    SELECT run_id, unnest(inputs) FROM ops SEMI JOIN claimants USING (run_id)
    UNION ALL
    SELECT run_id, output FROM ops SEMI JOIN claimants USING (run_id)
)
SELECT claimants.run_id, claimants.id, claimants.kind, 'op' AS other_kind
FROM claimants
SEMI JOIN _op_nodes AS ops ON ops.run_id = claimants.run_id AND ops.node_id = claimants.id
WHERE claimants.kind <> 'op'
UNION ALL
SELECT claimants.run_id, claimants.id, claimants.kind, 'tensor'
FROM claimants
SEMI JOIN seen_tensors
    ON seen_tensors.run_id = claimants.run_id AND 'tensor/' || seen_tensors.tensor_id = claimants.id;

COMMENT ON VIEW _graph_collisions IS
'Nodes of the graph of a run that share their id with a node of another kind; such a run has no graph (protocol 4.3). Grain: run_id, id, kind, other_kind.';
COMMENT ON COLUMN _graph_collisions.run_id IS 'The run.';
COMMENT ON COLUMN _graph_collisions.id IS 'The id that two nodes claim.';
COMMENT ON COLUMN _graph_collisions.kind IS 'Kind of the one: root, function, module or op.';
COMMENT ON COLUMN _graph_collisions.other_kind IS 'Kind of the other: op or tensor.';
