-- A device clock is cut at every begin and end. Between two cuts nothing begins or ends, so a segment has one set of
-- owners, and the segments of a clock add up to its busy time exactly.
-- Intervals are first put into clusters, runs of overlapping ones, so that a segment meets those of its cluster alone.
WITH reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id, clock_kind ORDER BY start_ns, end_ns, seq
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM _busy_intervals
    WHERE end_ns > start_ns
),
clustered AS (
    SELECT
        * EXCLUDE (reached_ns),
        count(*) FILTER (reached_ns IS NULL OR start_ns >= reached_ns) OVER (
            PARTITION BY run_id, device, clock_id, clock_kind ORDER BY start_ns, end_ns, seq
            ROWS UNBOUNDED PRECEDING
        ) AS cluster
    FROM reached
),
cuts AS (
    SELECT DISTINCT run_id, device, clock_id, clock_kind, cluster, unnest([start_ns, end_ns]) AS start_ns
    FROM clustered
),
pieces AS (
    SELECT
        *,
        lead(start_ns) OVER (PARTITION BY run_id, device, clock_id, clock_kind, cluster ORDER BY start_ns) AS end_ns
    FROM cuts
)
SELECT
    piece.run_id,
    piece.device,
    piece.clock_id,
    piece.clock_kind,
    piece.start_ns,
    piece.end_ns - piece.start_ns AS duration_ns,
    list(DISTINCT busy.iteration_id ORDER BY busy.iteration_id) FILTER (busy.iteration_id IS NOT NULL) AS iterations,
    list(DISTINCT busy.reason ORDER BY busy.reason) FILTER (busy.iteration_id IS NULL) AS reasons
FROM pieces AS piece
JOIN clustered AS busy
    ON busy.run_id = piece.run_id AND busy.device = piece.device AND busy.clock_id = piece.clock_id
    AND busy.clock_kind = piece.clock_kind AND busy.cluster = piece.cluster
    AND busy.start_ns <= piece.start_ns AND busy.end_ns >= piece.end_ns
WHERE piece.end_ns IS NOT NULL
GROUP BY ALL;

COMMENT ON VIEW _busy_segments IS
'The busy time of a device clock, cut so that each segment has one set of owners. Grain: run_id, device, clock_id, clock_kind, start_ns.';
COMMENT ON COLUMN _busy_segments.run_id IS 'The run.';
COMMENT ON COLUMN _busy_segments.device IS 'Device: its UUID in what an engine recorded, its label in a trace.';
COMMENT ON COLUMN _busy_segments.clock_id IS 'Clock of the times.';
COMMENT ON COLUMN _busy_segments.clock_kind IS 'monotonic or device.';
COMMENT ON COLUMN _busy_segments.start_ns IS 'Start, in nanoseconds.';
COMMENT ON COLUMN _busy_segments.duration_ns IS 'Duration in nanoseconds.';
COMMENT ON COLUMN _busy_segments.iterations IS 'Iterations that own it, sorted; NULL: none does.';
COMMENT ON COLUMN _busy_segments.reasons IS 'Reasons of activities in it that no iteration owns; NULL: none.';
