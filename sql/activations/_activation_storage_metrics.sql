-- A storage counts for the part of its life that lies in the measured region [start, end) (protocol 6.3):
--
--   region            [============)
--   freed inside   [------)            live ---|, not retained
--   freed at end          [--------)   not retained: it is gone then, as in 5.2
--   never freed             [--------  live until the end, retained
--   from the end on                [-  live 0, retained unless freed by the end
--
-- Bytes times nanoseconds need up to 126 bits. HUGEINT holds them, and a sum that it cannot hold raises.
WITH clipped AS (
    SELECT
        storage.run_id,
        storage.op_seq,
        storage.bytes::HUGEINT AS bytes,
        greatest(
            least(coalesce(storage.end_timestamp_ns, region.end_ns), region.end_ns)::HUGEINT
            - greatest(storage.start_timestamp_ns, region.start_ns),
            0::HUGEINT
        ) AS live_ns,
        storage.end_timestamp_ns IS NULL OR storage.end_timestamp_ns > region.end_ns AS retained
    FROM _activation_storages AS storage
    JOIN _measured_region AS region USING (run_id)
    WHERE storage.op_seq IS NOT NULL
)
SELECT
    run_id,
    op_seq,
    count(*) AS storage_count,
    sum(bytes) AS allocated_bytes,
    sum(live_ns) AS live_ns,
    sum(bytes * live_ns) AS byte_nanoseconds,
    coalesce(sum(bytes) FILTER (retained), 0) AS retained_bytes
FROM clipped
GROUP BY run_id, op_seq;

COMMENT ON VIEW _activation_storage_metrics IS
'Logical memory of the activation storages that name one operation (protocol 6.3). Grain: run_id, op_seq; an operation without such a storage has no row.';
COMMENT ON COLUMN _activation_storage_metrics.run_id IS 'The run.';
COMMENT ON COLUMN _activation_storage_metrics.op_seq IS 'Position of the operation in its source.';
COMMENT ON COLUMN _activation_storage_metrics.storage_count IS 'Number of storages.';
COMMENT ON COLUMN _activation_storage_metrics.allocated_bytes IS 'Sum of their bytes.';
COMMENT ON COLUMN _activation_storage_metrics.live_ns IS
'Sum of their live durations inside the measured region, in nanoseconds.';
COMMENT ON COLUMN _activation_storage_metrics.byte_nanoseconds IS
'Sum of bytes times live nanoseconds inside the measured region.';
COMMENT ON COLUMN _activation_storage_metrics.retained_bytes IS
'Bytes of the storages that were not freed by the end of the measured region.';
