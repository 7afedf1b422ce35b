-- Readers refuse a repeated span id, so a second span of one id can only come from planes written by other means.
-- References then mean the first one; the repetition itself is an issue of its own.
SELECT
    run_id,
    id,
    count(*) AS copies,
    min(seq) AS seq,
    arg_min_null(parent_id, seq) AS parent_id,
    min_by(start_ns, seq) AS start_ns,
    arg_min_null(duration_ns, seq) AS duration_ns,
    arg_min_null(start_ns::HUGEINT + duration_ns, seq) AS end_ns
FROM spans
GROUP BY run_id, id;

COMMENT ON VIEW _health_span_index IS 'The span that a span id means. Grain: run_id, id.';
COMMENT ON COLUMN _health_span_index.run_id IS 'The run.';
COMMENT ON COLUMN _health_span_index.id IS 'The span id.';
COMMENT ON COLUMN _health_span_index.copies IS 'Number of spans with this id; more than 1 is an error.';
COMMENT ON COLUMN _health_span_index.seq IS 'Position of the first span with this id in its source.';
COMMENT ON COLUMN _health_span_index.parent_id IS 'Enclosing span; NULL for a root.';
COMMENT ON COLUMN _health_span_index.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN _health_span_index.duration_ns IS 'Duration in nanoseconds; NULL for a span that never ended.';
COMMENT ON COLUMN _health_span_index.end_ns IS
'End on the host clock, in nanoseconds; NULL for a span that never ended.';
