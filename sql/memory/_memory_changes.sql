-- Lifetimes, not events, make the changes: an alias and an unpaired free change nothing (protocol 5.1).
SELECT run_id, device, category, change.timestamp_ns, change.bytes, change.storages
FROM (
    SELECT
        run_id,
        device,
        category,
        unnest([
            {timestamp_ns: start_timestamp_ns, bytes: bytes::HUGEINT, storages: 1},
            {timestamp_ns: end_timestamp_ns, bytes: -bytes::HUGEINT, storages: -1}
        ]) AS change
    FROM storage_lifetimes
)
WHERE change.timestamp_ns IS NOT NULL;

COMMENT ON VIEW _memory_changes IS
'What one opening or closing of a storage lifetime changes. Grain: one end of a lifetime.';
COMMENT ON COLUMN _memory_changes.run_id IS 'The run.';
COMMENT ON COLUMN _memory_changes.device IS 'Device of the storage.';
COMMENT ON COLUMN _memory_changes.category IS 'Semantic category of the storage.';
COMMENT ON COLUMN _memory_changes.timestamp_ns IS 'Host time of the change, in nanoseconds.';
COMMENT ON COLUMN _memory_changes.bytes IS 'Bytes that become live; negative for a free.';
COMMENT ON COLUMN _memory_changes.storages IS 'Storages that become live: 1, or -1 for a free.';
