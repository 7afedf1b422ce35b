-- Every timestamp with a memory event is a point, also when its events change nothing, and a point stands after all of
-- them: a free and an allocation at one instant are seen net (protocol 5.1).
WITH changes AS (
    SELECT DISTINCT run_id, timestamp_ns, 0::HUGEINT AS bytes FROM memory_events
    UNION ALL
    SELECT run_id, timestamp_ns, bytes FROM _memory_changes
),
net AS (
    SELECT run_id, timestamp_ns, sum(bytes) AS bytes FROM changes GROUP BY run_id, timestamp_ns
)
SELECT
    run_id,
    timestamp_ns,
    sum(bytes) OVER (PARTITION BY run_id ORDER BY timestamp_ns ROWS UNBOUNDED PRECEDING) AS live_bytes
FROM net;

COMMENT ON VIEW live_bytes IS
'Bytes of live logical storages over time (protocol 5.1); not what an allocator holds. Grain: run_id, timestamp_ns; a run without memory events has no row.';
COMMENT ON COLUMN live_bytes.run_id IS 'The run.';
COMMENT ON COLUMN live_bytes.timestamp_ns IS 'Host time of at least one memory event, in nanoseconds.';
COMMENT ON COLUMN live_bytes.live_bytes IS 'Bytes live after all events of the timestamp, over all devices.';
