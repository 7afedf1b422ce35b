-- A block that is not in use may lie in a segment beside blocks that are: then no emptying of the cache gives it back.
WITH of_blocks AS (
    SELECT
        run_id,
        segment_seq AS seq,
        sum(bytes) FILTER (state = 'active_allocated')::HUGEINT AS allocated,
        sum(bytes) FILTER (state LIKE 'active%')::HUGEINT AS active,
        sum(requested_bytes) FILTER (state LIKE 'active%')::HUGEINT AS requested,
        count(*) FILTER (state LIKE 'active%' AND requested_bytes IS NULL) AS unknown,
        sum(bytes) FILTER (state NOT LIKE 'active%')::HUGEINT AS inactive,
        max(bytes) FILTER (state NOT LIKE 'active%') AS largest,
        count(*) > 1 AS is_split
    FROM allocator_blocks
    GROUP BY run_id, segment_seq
),
pools AS (
    SELECT
        segment.run_id,
        segment.device,
        segment.pool_id,
        count(*) AS segments,
        sum(total_bytes)::HUGEINT AS total_bytes,
        coalesce(sum(allocated), 0)::HUGEINT AS allocated_bytes,
        coalesce(sum(active), 0)::HUGEINT AS active_bytes,
        CASE WHEN coalesce(sum(unknown), 0) = 0 THEN coalesce(sum(requested), 0)::HUGEINT END AS requested_bytes,
        coalesce(sum(inactive), 0)::HUGEINT AS inactive_bytes,
        coalesce(sum(inactive) FILTER (is_split), 0)::HUGEINT AS inactive_split_bytes,
        max(largest) AS largest_inactive_bytes
    FROM allocator_segments AS segment
    LEFT JOIN of_blocks ON of_blocks.run_id = segment.run_id AND of_blocks.seq = segment.seq
    GROUP BY segment.run_id, segment.device, segment.pool_id
)
SELECT
    *,
    CASE WHEN inactive_bytes > 0 THEN 1 - largest_inactive_bytes::DOUBLE / inactive_bytes::DOUBLE END AS fragmentation
FROM pools;

COMMENT ON VIEW segment_fragmentation IS
'How the segments that an allocator held were used when a memory snapshot was taken. Grain: run_id, device, pool_id.';
COMMENT ON COLUMN segment_fragmentation.run_id IS 'The run.';
COMMENT ON COLUMN segment_fragmentation.device IS 'Device label.';
COMMENT ON COLUMN segment_fragmentation.pool_id IS 'Memory pool; NULL when the snapshot names none.';
COMMENT ON COLUMN segment_fragmentation.segments IS 'Number of segments.';
COMMENT ON COLUMN segment_fragmentation.total_bytes IS 'Bytes of the segments.';
COMMENT ON COLUMN segment_fragmentation.allocated_bytes IS
'Bytes of the blocks in use (active_allocated), rounded as the allocator does.';
COMMENT ON COLUMN segment_fragmentation.active_bytes IS
'Bytes of the blocks in use or waiting for a stream to let go, rounded as the allocator does.';
COMMENT ON COLUMN segment_fragmentation.requested_bytes IS
'Bytes asked for in the active blocks; what is left to active_bytes is rounding. NULL when a block does not say.';
COMMENT ON COLUMN segment_fragmentation.inactive_bytes IS 'Bytes of the blocks that are held and not in use.';
COMMENT ON COLUMN segment_fragmentation.inactive_split_bytes IS
'Bytes of those of them that share their segment with other blocks, so that it cannot be given back.';
COMMENT ON COLUMN segment_fragmentation.largest_inactive_bytes IS
'Largest block not in use: no larger request fits without another segment. Unit: bytes. NULL when there is none.';
COMMENT ON COLUMN segment_fragmentation.fragmentation IS
'1 - largest / all inactive bytes: 0 when they are one block, near 1 when they are many. NULL when there is none.';
