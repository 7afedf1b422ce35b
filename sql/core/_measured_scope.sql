-- Two walks from the measured span, down and up (protocol 4.4); UNION ends both when parents form a circle. In such a
-- circle a span is above and below; it counts as below, because the subtree is asked first.
WITH RECURSIVE below AS (
    SELECT run_id, span_id FROM _measured_region
    UNION
    SELECT child.run_id, child.id
    FROM below
    JOIN spans AS child ON child.run_id = below.run_id AND child.parent_id = below.span_id
),
above AS (
    SELECT run_id, span_id FROM _measured_region
    UNION
    SELECT child.run_id, child.parent_id
    FROM above
    JOIN spans AS child ON child.run_id = above.run_id AND child.id = above.span_id
    WHERE child.parent_id IS NOT NULL
)
SELECT
    spans.run_id,
    spans.id AS span_id,
    CASE
        WHEN below.span_id IS NOT NULL THEN 'measured_subtree'
        WHEN above.span_id IS NOT NULL THEN 'ancestor'
        ELSE 'concurrent_overlap'
    END AS scope
FROM spans
JOIN _measured_region AS region USING (run_id)
LEFT JOIN below ON below.run_id = spans.run_id AND below.span_id = spans.id
LEFT JOIN above ON above.run_id = spans.run_id AND above.span_id = spans.id;

COMMENT ON VIEW _measured_scope IS
'How a span stands to the measured region of its run (protocol 4.4). Grain: run_id, span_id; runs without exactly one closed measured span have no row.';
COMMENT ON COLUMN _measured_scope.run_id IS 'The run.';
COMMENT ON COLUMN _measured_scope.span_id IS 'The span.';
COMMENT ON COLUMN _measured_scope.scope IS
'measured_subtree: the measured span or below it; ancestor: above it; concurrent_overlap: any other span, whether or not it overlaps in time.';
