SELECT
    run_id,
    id AS span_id,
    name,
    TRY_CAST(regexp_extract(name, '(\d+)\D*$', 1) AS BIGINT) AS step_number,
    row_number() OVER (PARTITION BY run_id, name ORDER BY start_ns, seq) AS occurrence,
    start_ns,
    start_ns::HUGEINT + duration_ns AS end_ns,
    duration_ns
FROM spans
WHERE duration_ns IS NOT NULL AND EXISTS (
    FROM step_marker_rules AS rules
    WHERE spans.name ILIKE rules.name ESCAPE '\'
        AND (rules.category IS NULL OR spans.category ILIKE rules.category ESCAPE '\')
);

COMMENT ON VIEW _step_spans IS 'The spans that mark a step and ended. Grain: run_id, span_id.';
COMMENT ON COLUMN _step_spans.run_id IS 'The run.';
COMMENT ON COLUMN _step_spans.span_id IS 'The span.';
COMMENT ON COLUMN _step_spans.name IS 'Name of the span.';
COMMENT ON COLUMN _step_spans.step_number IS 'Last number in the name; NULL when it holds none.';
COMMENT ON COLUMN _step_spans.occurrence IS 'Number of the span among those of its name in the run, from 1.';
COMMENT ON COLUMN _step_spans.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN _step_spans.end_ns IS 'End on the host clock, in nanoseconds (exclusive).';
COMMENT ON COLUMN _step_spans.duration_ns IS 'Duration in nanoseconds.';
