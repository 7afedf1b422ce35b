-- Work belongs to the iteration whose range is around its launch, on the launching thread: start <= launch < end.
WITH work AS (
    SELECT run_id, seq, correlation_id
    FROM device_intervals
    WHERE run_id IN (SELECT run_id FROM iteration_ranges)
),
launched AS (
    SELECT
        work.run_id,
        work.seq,
        call.seq AS launch_seq,
        coalesce(call.process_id, -1) AS process,
        coalesce(call.thread_id, -1) AS thread,
        call.start_ns::HUGEINT AS start_ns
    FROM work
    LEFT JOIN _launch_index AS launch ON launch.run_id = work.run_id AND launch.correlation_id = work.correlation_id
    LEFT JOIN launches AS call ON call.run_id = launch.run_id AND call.seq = launch.seq
),
placed AS (
    SELECT launched.*, segment.iterations, segment.end_ns
    FROM launched
    ASOF LEFT JOIN _iteration_segments AS segment
        ON segment.run_id = launched.run_id AND segment.process = launched.process
        AND segment.thread = launched.thread AND segment.start_ns <= launched.start_ns
),
inside AS (
    SELECT *, CASE WHEN start_ns < end_ns THEN iterations ELSE [] END AS candidates FROM placed
)
SELECT
    run_id,
    seq,
    launch_seq,
    CASE WHEN len(candidates) = 1 THEN candidates[1] END AS iteration_id,
    CASE
        WHEN launch_seq IS NULL THEN 'no_launch_record'
        WHEN len(candidates) = 0 THEN 'launch_outside_iteration_range'
        WHEN len(candidates) > 1 THEN 'ambiguous_iteration_range'
    END AS reason,
    candidates
FROM inside;

COMMENT ON VIEW launch_iteration_links IS
'Which iteration each device interval of a trace belongs to, by the range around its launch on the launching thread; for traces with such ranges. Grain: run_id, seq.';
COMMENT ON COLUMN launch_iteration_links.run_id IS 'The run.';
COMMENT ON COLUMN launch_iteration_links.seq IS 'seq of the device interval.';
COMMENT ON COLUMN launch_iteration_links.launch_seq IS 'seq of its launch; NULL when none is recorded.';
COMMENT ON COLUMN launch_iteration_links.iteration_id IS 'Its iteration; NULL when it stays unlinked.';
COMMENT ON COLUMN launch_iteration_links.reason IS
'no_launch_record, launch_outside_iteration_range (also one on another thread) or ambiguous_iteration_range (ranges of several iterations are around it); NULL when it is linked.';
COMMENT ON COLUMN launch_iteration_links.candidates IS 'Iterations whose ranges are around its launch, sorted.';
