-- A row joins by the keys that it carries itself, whichever these are, so the join cannot be on one of them. Official
-- projection reports carry none; only rows that do are joined at all (protocol 12.6).
WITH keyed AS (
    SELECT
        *,
        projected_start_ns::HUGEINT + projected_duration_ns AS projected_end_ns,
        list_filter([
            CASE WHEN correlation_id IS NOT NULL THEN 'correlation_id' END,
            CASE WHEN device IS NOT NULL THEN 'device' END,
            CASE WHEN context_id IS NOT NULL THEN 'context_id' END,
            CASE WHEN stream_id IS NOT NULL THEN 'stream_id' END
        ], lambda key: key IS NOT NULL) AS join_keys
    FROM range_projections
),
clipped AS (
    SELECT
        keyed.run_id,
        keyed.seq,
        greatest(work.start_ns, keyed.projected_start_ns) AS start_ns,
        least(work.start_ns::HUGEINT + work.duration_ns, keyed.projected_end_ns) AS end_ns
    FROM keyed
    JOIN device_intervals AS work
        ON work.run_id = keyed.run_id
        AND work.clock_id = keyed.clock_id
        AND len(keyed.join_keys) > 0
        AND (keyed.correlation_id IS NULL OR work.correlation_id = keyed.correlation_id)
        AND (keyed.device IS NULL OR work.device = keyed.device)
        AND (keyed.context_id IS NULL OR work.context_id = keyed.context_id)
        AND (keyed.stream_id IS NULL OR work.stream_id = keyed.stream_id)
        AND work.start_ns < keyed.projected_end_ns
        AND work.start_ns::HUGEINT + work.duration_ns > keyed.projected_start_ns
),
reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY run_id, seq ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM clipped
),
joined AS (
    SELECT run_id, seq, count(*) AS joined_operations, sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS gpu_busy_ns
    FROM reached
    GROUP BY run_id, seq
),
timed AS (
    SELECT DISTINCT run_id FROM device_intervals
)
SELECT
    run_id,
    seq,
    keyed.name AS semantic_key,
    keyed.clock_id,
    keyed.projected_start_ns,
    keyed.projected_duration_ns,
    keyed.gpu_operations,
    keyed.join_keys,
    CASE WHEN len(keyed.join_keys) > 0 THEN coalesce(joined.joined_operations, 0) END AS joined_operations,
    CASE WHEN len(keyed.join_keys) > 0 THEN coalesce(joined.gpu_busy_ns, 0) END AS gpu_busy_ns,
    CASE
        WHEN keyed.gpu_operations = 0 THEN false
        WHEN keyed.gpu_operations IS NULL OR timed.run_id IS NULL OR len(keyed.join_keys) = 0 THEN true
        ELSE keyed.gpu_operations = coalesce(joined.joined_operations, 0)
    END AS qualifies
FROM keyed
LEFT JOIN joined USING (run_id, seq)
LEFT JOIN timed USING (run_id);

COMMENT ON VIEW _projection_joins IS
'Projected ranges with the device work that they join by the keys they carry (protocol 12.6). Grain: run_id, seq.';
COMMENT ON COLUMN _projection_joins.run_id IS 'The run.';
COMMENT ON COLUMN _projection_joins.seq IS 'seq of the projection.';
COMMENT ON COLUMN _projection_joins.semantic_key IS 'Name of the range.';
COMMENT ON COLUMN _projection_joins.clock_id IS 'Clock of the projected interval and of the work.';
COMMENT ON COLUMN _projection_joins.projected_start_ns IS 'Start of the projected interval, in nanoseconds.';
COMMENT ON COLUMN _projection_joins.projected_duration_ns IS 'Its duration in nanoseconds.';
COMMENT ON COLUMN _projection_joins.gpu_operations IS 'Device operations that the report declares; NULL: not declared.';
COMMENT ON COLUMN _projection_joins.join_keys IS 'The keys that the range carries; empty: it joins nothing.';
COMMENT ON COLUMN _projection_joins.joined_operations IS
'Device intervals that equal it on every key and overlap it; NULL without keys.';
COMMENT ON COLUMN _projection_joins.gpu_busy_ns IS
'Union of the joined work inside the projected interval, in nanoseconds; NULL without keys.';
COMMENT ON COLUMN _projection_joins.qualifies IS
'False when the row speaks against its label: a declared count of 0, or one that differs from the joined work (protocol 12.5).';
