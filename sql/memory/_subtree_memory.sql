-- The lifetimes of a span are those allocated in it or below it. Its peak sees them through [start, end) of the span
-- (protocol 5.2):
--
--   span            [===========)
--   live before  ------)               counts from the start of the span
--   ends at      ---|                  ends by the start: dropped
--   begins at                   [---   dropped, but still live after the end: residual
--
-- All changes at one instant are taken net, and the bytes live at the start are a candidate themselves. A span of
-- length 0 sees nothing and leaves nothing.
WITH held AS (
    SELECT
        span.run_id,
        span.id AS span_id,
        span.start_ns,
        span.start_ns::HUGEINT + span.duration_ns AS end_ns,
        lifetime.bytes::HUGEINT AS bytes,
        lifetime.start_timestamp_ns,
        lifetime.end_timestamp_ns
    FROM storage_lifetimes AS lifetime
    JOIN _span_ancestors AS above
        ON above.run_id = lifetime.run_id AND above.span_id = lifetime.allocation_span_id
    JOIN spans AS span ON span.run_id = above.run_id AND span.id = above.ancestor_id
    WHERE span.duration_ns IS NOT NULL
),
changes AS (
    SELECT run_id, span_id, greatest(start_timestamp_ns, start_ns) AS timestamp_ns, bytes
    FROM held
    WHERE start_timestamp_ns < end_ns AND (end_timestamp_ns IS NULL OR end_timestamp_ns > start_ns)
    UNION ALL
    SELECT run_id, span_id, end_timestamp_ns, -bytes
    FROM held
    WHERE end_timestamp_ns > start_ns AND end_timestamp_ns < end_ns
),
points AS (
    SELECT
        run_id,
        span_id,
        sum(sum(bytes)) OVER (
            PARTITION BY run_id, span_id ORDER BY timestamp_ns ROWS UNBOUNDED PRECEDING
        ) AS live_bytes
    FROM changes
    GROUP BY run_id, span_id, timestamp_ns
),
peaks AS (
    SELECT run_id, span_id, max(live_bytes) AS peak_live_bytes FROM points GROUP BY run_id, span_id
),
residuals AS (
    SELECT
        run_id,
        span_id,
        sum(bytes) FILTER (
            end_ns > start_ns AND (end_timestamp_ns IS NULL OR end_timestamp_ns > end_ns)
        ) AS residual_bytes
    FROM held
    GROUP BY run_id, span_id
)
SELECT
    run_id,
    span_id,
    coalesce(peak_live_bytes, 0) AS peak_live_bytes,
    coalesce(residual_bytes, 0) AS residual_bytes
FROM residuals
LEFT JOIN peaks USING (run_id, span_id);

COMMENT ON VIEW _subtree_memory IS
'Live bytes of the storages allocated in a closed span or below it (protocol 5.2). Grain: run_id, span_id; a span without any has no row.';
COMMENT ON COLUMN _subtree_memory.run_id IS 'The run.';
COMMENT ON COLUMN _subtree_memory.span_id IS 'The span.';
COMMENT ON COLUMN _subtree_memory.peak_live_bytes IS
'Largest live bytes inside the span; 0 when none of the storages is live inside it.';
COMMENT ON COLUMN _subtree_memory.residual_bytes IS
'Bytes still live after the end of the span; a free exactly at the end is not left.';
