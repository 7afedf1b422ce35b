SELECT run_id, device, position, timestamp_ns, bytes, device_free_bytes, stream_id, frame
FROM allocator_events
WHERE action = 'oom';

COMMENT ON VIEW snapshot_oom IS 'Out-of-memory entries of a memory snapshot''s history. Grain: run_id, device, position.';
COMMENT ON COLUMN snapshot_oom.run_id IS 'The run.';
COMMENT ON COLUMN snapshot_oom.device IS 'Device label.';
COMMENT ON COLUMN snapshot_oom.position IS 'Place in the history of the device, from 0.';
COMMENT ON COLUMN snapshot_oom.timestamp_ns IS 'Wall-clock time, ns; NULL in dialects without times.';
COMMENT ON COLUMN snapshot_oom.bytes IS 'Bytes that were asked for and not given.';
COMMENT ON COLUMN snapshot_oom.device_free_bytes IS 'Free bytes of the device then; NULL when not recorded.';
COMMENT ON COLUMN snapshot_oom.stream_id IS 'Stream handle; NULL when not recorded.';
COMMENT ON COLUMN snapshot_oom.frame IS 'Frame that asked; NULL when none was recorded.';
