-- The history is a ring buffer. What was live before its first entry is what is live at the end minus what the history
-- added; a replay from zero leaves it out, and both numbers are shown.
WITH replayed AS (
    SELECT
        run_id,
        device,
        arg_max(running_bytes, position) AS net_bytes,
        greatest(max(running_bytes), 0) AS peak_from_zero_bytes,
        least(min(running_bytes), 0) AS min_from_zero_bytes,
        arg_min(position, (-running_bytes, position)) FILTER (running_bytes > 0) AS peak_position
    FROM _snapshot_steps
    GROUP BY run_id, device
),
counted AS (
    SELECT run_id, device, count(*) AS events FROM allocator_events GROUP BY run_id, device
),
live AS (
    SELECT
        run_id,
        device,
        sum(requested_bytes) FILTER (state LIKE 'active%')::HUGEINT AS requested,
        count(*) FILTER (state LIKE 'active%' AND requested_bytes IS NULL) AS unknown
    FROM allocator_blocks
    GROUP BY run_id, device
),
devices AS (
    SELECT run_id, device FROM counted
    UNION
    SELECT run_id, device FROM live
),
joined AS (
    SELECT
        devices.*,
        coalesce(events, 0) AS events,
        CASE WHEN coalesce(unknown, 0) = 0 THEN coalesce(requested, 0) END AS final_live,
        coalesce(net_bytes, 0) AS net,
        coalesce(peak_from_zero_bytes, 0) AS peak_from_zero_bytes,
        coalesce(min_from_zero_bytes, 0) AS min_from_zero,
        peak_position
    FROM devices
    LEFT JOIN counted USING (run_id, device)
    LEFT JOIN live USING (run_id, device)
    LEFT JOIN replayed USING (run_id, device)
)
SELECT
    joined.run_id,
    joined.device,
    events,
    final_live - net AS live_at_window_start,
    net,
    final_live,
    peak_from_zero_bytes,
    final_live - net + peak_from_zero_bytes AS peak_seeded_bytes,
    min_from_zero,
    CASE WHEN events > 0 THEN final_live - net = 0 AND min_from_zero = 0 END AS window_complete,
    peak_position,
    step.timestamp_ns AS peak_timestamp_ns
FROM joined
LEFT JOIN _snapshot_steps AS step
    ON step.run_id = joined.run_id AND step.device = joined.device AND step.position = peak_position;

COMMENT ON VIEW snapshot_peaks IS
'Peaks of live bytes in a memory snapshot: of its history replayed from zero, and from the bytes that were live before it. The history is the window; without one the window is the moment of the snapshot. Grain: run_id, device.';
COMMENT ON COLUMN snapshot_peaks.run_id IS 'The run.';
COMMENT ON COLUMN snapshot_peaks.device IS 'Device label.';
COMMENT ON COLUMN snapshot_peaks.events IS 'Entries of its history, of every action; 0 when none was recorded.';
COMMENT ON COLUMN snapshot_peaks.live_at_window_start IS
'Bytes that were live before the first entry: final_live minus net. Unit: bytes. NULL when final_live is.';
COMMENT ON COLUMN snapshot_peaks.net IS
'Allocated minus freed bytes of the whole history; 0 where it has neither. Unit: bytes.';
COMMENT ON COLUMN snapshot_peaks.final_live IS
'Bytes asked for in the blocks that were active when the snapshot was taken. Unit: bytes. NULL when a block does not say.';
COMMENT ON COLUMN snapshot_peaks.peak_from_zero_bytes IS
'Highest sum of the history alone, as if nothing had been live before it; at least 0. What a replay without the blocks says.';
COMMENT ON COLUMN snapshot_peaks.peak_seeded_bytes IS
'Highest live bytes in the window, with those that were live before it; NULL when these are unknown.';
COMMENT ON COLUMN snapshot_peaks.min_from_zero IS
'Lowest sum of the history alone; below 0 where it has freed more than it had allocated by then. Unit: bytes.';
COMMENT ON COLUMN snapshot_peaks.window_complete IS
'True: the history explains every byte that is live at the end, and nothing was live before it. False: it began later. NULL: there is no history, or final_live is unknown.';
COMMENT ON COLUMN snapshot_peaks.peak_position IS
'First place in the history with the peak; NULL when nothing in it is above what was live before it.';
COMMENT ON COLUMN snapshot_peaks.peak_timestamp_ns IS
'Wall-clock time of that entry, ns; NULL without a place or in dialects without times.';
