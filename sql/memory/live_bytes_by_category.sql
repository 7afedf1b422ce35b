-- A category has a value at every timestamp of its run, not only where it changes itself. Storages are counted beside
-- their bytes, because a live storage of 0 bytes is not an absent one.
WITH changes AS (
    SELECT run_id, category, timestamp_ns, sum(bytes) AS bytes, sum(storages) AS storages
    FROM _memory_changes
    GROUP BY run_id, category, timestamp_ns
),
points AS (
    SELECT run_id, kept.category, timestamp_ns
    FROM (SELECT DISTINCT run_id, timestamp_ns FROM memory_events)
    JOIN (SELECT DISTINCT run_id, category FROM changes) AS kept USING (run_id)
)
SELECT
    points.run_id,
    points.timestamp_ns,
    points.category,
    sum(coalesce(changes.bytes, 0)) OVER earlier AS live_bytes
FROM points
LEFT JOIN changes USING (run_id, category, timestamp_ns)
WINDOW earlier AS (
    PARTITION BY points.run_id, points.category ORDER BY points.timestamp_ns ROWS UNBOUNDED PRECEDING
)
QUALIFY sum(coalesce(changes.storages, 0)) OVER earlier > 0;

COMMENT ON VIEW live_bytes_by_category IS
'Bytes of live logical storages of one semantic category over time, over all devices (protocol 5.1). A category without a live storage at a timestamp has no row there. Grain: run_id, timestamp_ns, category.';
COMMENT ON COLUMN live_bytes_by_category.run_id IS 'The run.';
COMMENT ON COLUMN live_bytes_by_category.timestamp_ns IS
'Host time of at least one memory event of the run, in nanoseconds.';
COMMENT ON COLUMN live_bytes_by_category.live_bytes IS
'Bytes live after all events of the timestamp; 0 only for live storages of 0 bytes.';
COMMENT ON COLUMN live_bytes_by_category.category IS
'Semantic category of the storages: parameter, activation, gradient, optimizer or other.';
