-- At the end the blocks tell. At the peak the window tells of what it allocated and had not freed; the rest of the peak
-- is one explicit row without a frame. An address is free for the next allocation once its free is complete, so the
-- next step of an address ends the block before it.
WITH ended AS (
    SELECT
        *,
        lead(position) OVER (PARTITION BY run_id, device, address ORDER BY position) AS end_position
    FROM _snapshot_steps
    WHERE address IS NOT NULL
),
held AS (
    SELECT
        run_id, device, 'end' AS moment, frame, category, true AS known,
        count(*) AS blocks, sum(requested_bytes)::HUGEINT AS bytes
    FROM allocator_blocks
    WHERE state LIKE 'active%' AND requested_bytes IS NOT NULL
    GROUP BY ALL
    UNION ALL
    SELECT run_id, device, 'peak', frame, category, true, count(*), sum(bytes)::HUGEINT
    FROM ended
    JOIN snapshot_peaks USING (run_id, device)
    WHERE action = 'alloc' AND position <= peak_position AND (end_position IS NULL OR end_position > peak_position)
    GROUP BY ALL
),
whole AS (
    SELECT run_id, device, 'peak' AS moment, peak_seeded_bytes AS bytes FROM snapshot_peaks WHERE events > 0
),
rest AS (
    SELECT whole.run_id, whole.device, moment, whole.bytes - coalesce(sum(held.bytes), 0) AS bytes
    FROM whole
    LEFT JOIN held USING (run_id, device, moment)
    GROUP BY whole.run_id, whole.device, moment, whole.bytes
)
SELECT run_id, device, moment, frame, category, known, blocks, bytes FROM held
UNION ALL
SELECT run_id, device, 'end', NULL, NULL, false, count(*), NULL
FROM allocator_blocks
WHERE state LIKE 'active%' AND requested_bytes IS NULL
GROUP BY run_id, device
UNION ALL
SELECT run_id, device, moment, NULL, NULL, false, NULL, bytes FROM rest WHERE bytes IS DISTINCT FROM 0;

COMMENT ON VIEW snapshot_composition IS
'What the live bytes of a memory snapshot consist of, at its end and at its peak; the rows of a moment add up to final_live or peak_seeded_bytes of snapshot_peaks where these are known. No peak without a history. Grain: run_id, device, moment, frame, category, known.';
COMMENT ON COLUMN snapshot_composition.run_id IS 'The run.';
COMMENT ON COLUMN snapshot_composition.device IS 'Device label.';
COMMENT ON COLUMN snapshot_composition.moment IS 'end: when the snapshot was taken. peak: at snapshot_peaks.peak_position.';
COMMENT ON COLUMN snapshot_composition.frame IS
'Innermost frame that is no allocator''s own; NULL when no frames were recorded, and in the remainder.';
COMMENT ON COLUMN snapshot_composition.category IS 'Category the source names; NULL when it names none.';
COMMENT ON COLUMN snapshot_composition.known IS
'False: the remainder. At the peak that is what was allocated before the history began, of which nothing but its sum is known (below 0 only where the history contradicts the blocks); at the end, blocks that do not say what was asked for.';
COMMENT ON COLUMN snapshot_composition.blocks IS 'Number of blocks; NULL in the remainder of a peak.';
COMMENT ON COLUMN snapshot_composition.bytes IS 'Bytes asked for. NULL: a remainder whose sum is unknown.';
