-- Absent or zero (protocol 5.2): a span without allocations has 0 bytes only where logical memory is declared complete;
-- elsewhere nothing is known about it. A run without any memory event has no logical plane, so nothing but dense bytes.
WITH tracked AS (
    SELECT run_id, CASE WHEN capture_contract.logical_memory = 'complete' THEN 0 END AS unobserved_bytes
    FROM runs
    SEMI JOIN memory_events USING (run_id)
),
direct AS (
    SELECT run_id, allocation_span_id AS span_id, sum(bytes) AS allocated_bytes
    FROM storage_lifetimes
    GROUP BY run_id, allocation_span_id
),
named AS (
    SELECT run_id, allocation_span_id AS span_id, op_name, sum(bytes) AS allocated_bytes
    FROM storage_lifetimes
    GROUP BY run_id, allocation_span_id, op_name
),
-- An op name that a span uses twice names neither operation.
unambiguous AS (
    SELECT run_id, any_value(node_id) AS node_id, any_value(allocated_bytes) AS allocated_bytes
    FROM _op_nodes
    JOIN named USING (run_id, span_id, op_name)
    GROUP BY run_id, span_id, op_name
    HAVING count(*) = 1
)
SELECT
    spans.run_id,
    spans.id AS node_id,
    _span_node_kind(spans.parent_id, spans.span_kind) AS node_kind,
    coalesce(direct.allocated_bytes, tracked.unobserved_bytes) AS allocated_bytes,
    coalesce(
        subtree.peak_live_bytes, CASE WHEN spans.duration_ns IS NOT NULL THEN tracked.unobserved_bytes END
    ) AS peak_live_bytes,
    coalesce(
        subtree.residual_bytes, CASE WHEN spans.duration_ns IS NOT NULL THEN tracked.unobserved_bytes END
    ) AS residual_bytes,
    NULL::BIGINT AS dense_bytes
FROM spans
LEFT JOIN tracked USING (run_id)
LEFT JOIN direct ON direct.run_id = spans.run_id AND direct.span_id = spans.id
LEFT JOIN _subtree_memory AS subtree ON subtree.run_id = spans.run_id AND subtree.span_id = spans.id
UNION ALL
SELECT
    ops.run_id,
    ops.node_id,
    'op',
    unambiguous.allocated_bytes,
    NULL,
    NULL,
    ops.output_dense_bytes
FROM _op_nodes AS ops
LEFT JOIN unambiguous USING (run_id, node_id);

COMMENT ON VIEW node_memory IS
'Logical memory of spans and operations (protocol 5.2). A dense footprint is not an allocation, and neither fills in for the other. Grain: run_id, node_id.';
COMMENT ON COLUMN node_memory.run_id IS 'The run.';
COMMENT ON COLUMN node_memory.node_id IS 'Span id, or span id, /op/ and the number of the operation in its span.';
COMMENT ON COLUMN node_memory.node_kind IS 'root, function, module or op (an operation, or a span of kind op).';
COMMENT ON COLUMN node_memory.allocated_bytes IS
'Bytes of the storages first allocated in the span itself, or by the operation that they name uniquely. NULL when none was recorded; of a span 0 then when logical memory is declared complete.';
COMMENT ON COLUMN node_memory.peak_live_bytes IS
'Largest live bytes inside the span of storages allocated in it or below it. NULL for operations and open spans, and when no such storage was recorded; 0 then when logical memory is declared complete.';
COMMENT ON COLUMN node_memory.residual_bytes IS
'Bytes of those storages still live after the end of the span; NULL as for the peak.';
COMMENT ON COLUMN node_memory.dense_bytes IS
'Dense output footprint of an operation in bytes; NULL for spans and for an unknown dtype.';
