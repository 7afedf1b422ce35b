-- A span of duration 0 stands for what lies under it: its operations and its children, and a child of duration 0 stands
-- for what lies under that one (protocol 4.3). The walk follows empty spans only, so a run without any costs nothing.
-- UNION ends it when parents form a circle; each empty span of the circle then counts once.
--
-- A span that never ended has duration 0 in the document that the protocol's rules are about (1.4), so it is empty
-- here. Its total is then what was seen under it, never the duration of the span. That document is not about foreign
-- traces: there, a span that never ended and holds nothing has no total.
WITH RECURSIVE walk AS (
    SELECT run_id, id AS span_id, id AS empty_id FROM spans WHERE coalesce(duration_ns, 0) = 0
    UNION
    SELECT walk.run_id, walk.span_id, child.id
    FROM walk
    JOIN spans AS child ON child.run_id = walk.run_id AND child.parent_id = walk.empty_id
    WHERE coalesce(child.duration_ns, 0) = 0
),
parts AS (
    SELECT run_id, span_id AS empty_id, duration_ns FROM ops
    UNION ALL
    SELECT run_id, parent_id, duration_ns FROM spans WHERE parent_id IS NOT NULL AND duration_ns > 0
),
gathered AS (
    SELECT walk.run_id, walk.span_id, sum(parts.duration_ns) AS duration_ns
    FROM walk
    JOIN parts ON parts.run_id = walk.run_id AND parts.empty_id = walk.empty_id
    GROUP BY walk.run_id, walk.span_id
)
SELECT
    spans.run_id,
    spans.id AS span_id,
    coalesce(
        nullif(spans.duration_ns, 0)::HUGEINT,
        gathered.duration_ns,
        CASE WHEN _is_foreign(runs.source_format) THEN NULL ELSE 0 END,
        spans.duration_ns
    ) AS host_total_time_ns
FROM spans
LEFT JOIN runs USING (run_id)
LEFT JOIN gathered ON gathered.run_id = spans.run_id AND gathered.span_id = spans.id;

COMMENT ON VIEW _span_host_total IS 'Total host time of a span (protocol 4.3). Grain: run_id, span_id.';
COMMENT ON COLUMN _span_host_total.run_id IS 'The run.';
COMMENT ON COLUMN _span_host_total.span_id IS 'The span.';
COMMENT ON COLUMN _span_host_total.host_total_time_ns IS
'Its duration in nanoseconds; of a span of duration 0 or without an end, the sum over its operations and children; NULL for a span of a foreign trace that has neither an end nor any of them.';
