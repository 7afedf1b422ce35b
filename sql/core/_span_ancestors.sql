-- UNION, not UNION ALL: a pair that is already known adds nothing, so parents that form a circle end by themselves.
-- The walk goes up, so each round carries one row per span that still has a recorded parent.
WITH RECURSIVE walk AS (
    SELECT run_id, id AS span_id, id AS ancestor_id FROM spans
    UNION
    SELECT walk.run_id, walk.span_id, parent.id
    FROM walk
    JOIN spans AS child ON child.run_id = walk.run_id AND child.id = walk.ancestor_id
    JOIN spans AS parent ON parent.run_id = child.run_id AND parent.id = child.parent_id
)
SELECT run_id, span_id, ancestor_id FROM walk;

COMMENT ON VIEW _span_ancestors IS
'Every span with itself and each recorded span above it. Grain: run_id, span_id, ancestor_id.';
COMMENT ON COLUMN _span_ancestors.run_id IS 'The run.';
COMMENT ON COLUMN _span_ancestors.span_id IS 'The span.';
COMMENT ON COLUMN _span_ancestors.ancestor_id IS
'The span itself or one above it; all of a circle when parents form one.';
