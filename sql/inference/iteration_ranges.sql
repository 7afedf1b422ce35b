-- The name is stormlog.iteration/PRODUCER/ID; a producer has no slash in it, an id may.
SELECT
    run_id,
    id AS span_id,
    -- A producer's % is escaped, as in every entity of the planes.
    replace(split_part(name, '/', 2), '%', '%25') || name[20 + length(split_part(name, '/', 2)):] AS iteration_id,
    process_id,
    thread_id,
    start_ns,
    duration_ns
FROM spans
WHERE regexp_full_match(name, 'stormlog\.iteration/[^/]+/.+', 's') AND duration_ns IS NOT NULL;

COMMENT ON VIEW iteration_ranges IS
'Ranges in a trace that an engine put around its iterations, by their names. Grain: run_id, span_id.';
COMMENT ON COLUMN iteration_ranges.run_id IS 'The run.';
COMMENT ON COLUMN iteration_ranges.span_id IS 'The span.';
COMMENT ON COLUMN iteration_ranges.iteration_id IS 'The iteration, as producer/id.';
COMMENT ON COLUMN iteration_ranges.process_id IS 'Process of the range; NULL when not recorded.';
COMMENT ON COLUMN iteration_ranges.thread_id IS 'Thread of the range; NULL when not recorded.';
COMMENT ON COLUMN iteration_ranges.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN iteration_ranges.duration_ns IS 'Duration in nanoseconds.';
