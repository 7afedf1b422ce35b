-- Ranges of a thread that overlap form a cluster; each cluster is cut at every start and end of its own ranges.
WITH spanned AS (
    SELECT *, start_ns::HUGEINT + duration_ns AS end_ns FROM iteration_ranges WHERE duration_ns > 0
),
marked AS (
    SELECT
        *,
        coalesce(start_ns >= max(end_ns) OVER (
            PARTITION BY run_id, process_id, thread_id ORDER BY start_ns, end_ns, span_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), true) AS opens
    FROM spanned
),
clustered AS (
    SELECT
        *,
        count(*) FILTER (opens) OVER (
            PARTITION BY run_id, process_id, thread_id ORDER BY start_ns, end_ns, span_id
        ) AS cluster
    FROM marked
),
cuts AS (
    SELECT DISTINCT run_id, process_id, thread_id, cluster, unnest([start_ns::HUGEINT, end_ns]) AS start_ns
    FROM clustered
),
pieces AS (
    SELECT
        *,
        lead(start_ns) OVER (PARTITION BY run_id, process_id, thread_id, cluster ORDER BY start_ns) AS end_ns
    FROM cuts
)
SELECT
    piece.run_id,
    coalesce(piece.process_id, -1) AS process,
    coalesce(piece.thread_id, -1) AS thread,
    piece.start_ns,
    piece.end_ns,
    list(DISTINCT own.iteration_id ORDER BY own.iteration_id) AS iterations
FROM pieces AS piece
JOIN clustered AS own
    ON own.run_id = piece.run_id AND own.process_id IS NOT DISTINCT FROM piece.process_id
    AND own.thread_id IS NOT DISTINCT FROM piece.thread_id AND own.cluster = piece.cluster
    AND own.start_ns <= piece.start_ns AND own.end_ns >= piece.end_ns
WHERE piece.end_ns IS NOT NULL
GROUP BY ALL;

COMMENT ON VIEW _iteration_segments IS
'The time of a thread inside iteration ranges, cut so that each segment is in one set of iterations. Grain: run_id, process, thread, start_ns.';
COMMENT ON COLUMN _iteration_segments.run_id IS 'The run.';
COMMENT ON COLUMN _iteration_segments.process IS 'Process; -1 when not recorded.';
COMMENT ON COLUMN _iteration_segments.thread IS 'Thread; -1 when not recorded.';
COMMENT ON COLUMN _iteration_segments.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN _iteration_segments.end_ns IS 'End, exclusive.';
COMMENT ON COLUMN _iteration_segments.iterations IS 'The iterations, sorted.';
