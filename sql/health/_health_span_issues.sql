-- Touching a parent's bounds is inside. Only two ended spans can be compared.
WITH parented AS (
    SELECT
        child.run_id,
        child.id,
        child.parent_id,
        child.start_ns,
        child.start_ns::HUGEINT + child.duration_ns AS end_ns,
        parent.id IS NULL AS parent_unknown,
        parent.start_ns AS parent_start_ns,
        parent.end_ns AS parent_end_ns
    FROM spans AS child
    LEFT JOIN _health_span_index AS parent ON parent.run_id = child.run_id AND parent.id = child.parent_id
    WHERE child.parent_id IS NOT NULL
)
SELECT run_id, 'duplicate_span_id' AS code, id AS subject, format('id of {} spans; expected 1', copies) AS message
FROM _health_span_index, unnest(range(copies - 1))
WHERE copies > 1
UNION ALL
SELECT run_id, 'open_span', id, format('started at {} ns and never ended; expected an end', start_ns)
FROM spans
WHERE duration_ns IS NULL
UNION ALL
SELECT run_id, 'unknown_parent', id, format('parent is {}; expected the id of a span', parent_id)
FROM parented
WHERE parent_unknown
UNION ALL
SELECT
    run_id,
    'child_outside_parent',
    id,
    format(
        '[{}, {}] ns; expected inside its parent {}, [{}, {}] ns',
        start_ns, end_ns::VARCHAR, parent_id, parent_start_ns, parent_end_ns::VARCHAR
    )
FROM parented
WHERE parent_end_ns IS NOT NULL AND (start_ns < parent_start_ns OR end_ns > parent_end_ns) AND end_ns IS NOT NULL
UNION ALL
SELECT run_id, 'span_cycle', id, 'its parent chain comes back to an id; expected to end at a root'
FROM _health_span_cycles;

COMMENT ON VIEW _health_span_issues IS
'Rules about spans and their parents that are broken. Grain: one span, or one repetition of an id.';
COMMENT ON COLUMN _health_span_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_span_issues.code IS 'Health code.';
COMMENT ON COLUMN _health_span_issues.subject IS 'Id of the span.';
COMMENT ON COLUMN _health_span_issues.message IS 'What was found, and what was expected.';
