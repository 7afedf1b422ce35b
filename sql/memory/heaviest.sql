-- The protocol keeps nodes of equal bytes in the order of its document, which sorts spans by id (1.4, 4.4).
SELECT
    memory.run_id,
    memory.node_id AS id,
    spans.name,
    memory.allocated_bytes,
    memory.peak_live_bytes,
    row_number() OVER (PARTITION BY memory.run_id ORDER BY memory.allocated_bytes DESC, memory.node_id) AS rank
FROM node_memory AS memory
JOIN _measured_subtree AS subtree ON subtree.run_id = memory.run_id AND subtree.span_id = memory.node_id
JOIN spans ON spans.run_id = memory.run_id AND spans.id = memory.node_id
WHERE memory.node_kind <> 'op' AND memory.allocated_bytes IS NOT NULL;

COMMENT ON VIEW heaviest IS
'Spans of the measured subtree ranked by the bytes allocated directly in them (protocol 4.4); every row, callers cut. Spans of kind op that have a parent and spans without known bytes take no part. Grain: run_id, id.';
COMMENT ON COLUMN heaviest.run_id IS 'The run.';
COMMENT ON COLUMN heaviest.id IS 'The span.';
COMMENT ON COLUMN heaviest.name IS 'Semantic label of the span.';
COMMENT ON COLUMN heaviest.allocated_bytes IS 'Bytes of the storages first allocated in the span itself.';
COMMENT ON COLUMN heaviest.peak_live_bytes IS
'Largest live bytes inside the span of storages allocated in it or below it; NULL when not known.';
COMMENT ON COLUMN heaviest.rank IS 'Place in its run, from 1: by bytes, then id.';
