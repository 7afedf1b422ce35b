-- Only two actions change live bytes: an allocation, and a free once every stream has let go of the block. Their sizes
-- are those asked for, so they add up with the requested sizes of the blocks that are live at the end.
SELECT
    run_id,
    device,
    seq,
    position,
    timestamp_ns,
    action,
    address,
    bytes,
    frame,
    category,
    sum(CASE action WHEN 'alloc' THEN bytes::HUGEINT ELSE -bytes::HUGEINT END) OVER (
        PARTITION BY run_id, device ORDER BY position ROWS UNBOUNDED PRECEDING
    ) AS running_bytes
FROM allocator_events
WHERE action IN ('alloc', 'free_completed') AND bytes IS NOT NULL;

COMMENT ON VIEW _snapshot_steps IS 'Entries of an allocator history that change live bytes. Grain: run_id, seq.';
COMMENT ON COLUMN _snapshot_steps.run_id IS 'The run.';
COMMENT ON COLUMN _snapshot_steps.device IS 'Device label.';
COMMENT ON COLUMN _snapshot_steps.seq IS 'Number of the entry in the snapshot.';
COMMENT ON COLUMN _snapshot_steps.position IS 'Place in the history of the device, from 0.';
COMMENT ON COLUMN _snapshot_steps.timestamp_ns IS 'Wall-clock time, ns; NULL in dialects without times.';
COMMENT ON COLUMN _snapshot_steps.action IS 'alloc or free_completed.';
COMMENT ON COLUMN _snapshot_steps.address IS 'Address; NULL in dialects that leave it out.';
COMMENT ON COLUMN _snapshot_steps.bytes IS 'Bytes asked for.';
COMMENT ON COLUMN _snapshot_steps.frame IS 'Frame of the entry; NULL when none was recorded.';
COMMENT ON COLUMN _snapshot_steps.category IS 'Category the source names; NULL when it names none.';
COMMENT ON COLUMN _snapshot_steps.running_bytes IS
'Allocated minus freed bytes of the history up to and with this entry; below 0 where older blocks were freed.';
