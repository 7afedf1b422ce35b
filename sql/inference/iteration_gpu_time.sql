WITH iterations AS (
    SELECT run_id, iteration_id, any_value(duration_ns) AS elapsed_ns
    FROM engine_events
    WHERE event_type = 'infer.iteration' AND iteration_id IS NOT NULL
    GROUP BY run_id, iteration_id
    UNION ALL
    SELECT run_id, iteration_id, CASE WHEN count(*) = 1 THEN any_value(duration_ns) END
    FROM iteration_ranges
    GROUP BY run_id, iteration_id
),
summed AS (
    SELECT
        run_id, iteration_id, device, clock_id, clock_kind,
        sum(end_ns - start_ns) AS summed_ns,
        count(DISTINCT seq) AS activities
    FROM _busy_intervals
    WHERE iteration_id IS NOT NULL
    GROUP BY ALL
),
owned AS (
    SELECT
        run_id, unnest(iterations) AS iteration_id, device, clock_id, clock_kind, duration_ns, len(iterations) AS owners
    FROM _busy_segments
),
busy AS (
    SELECT
        run_id, iteration_id, device, clock_id, clock_kind,
        sum(duration_ns) AS busy_ns,
        coalesce(sum(duration_ns) FILTER (owners = 1), 0) AS exclusive_ns
    FROM owned
    GROUP BY ALL
)
SELECT
    run_id,
    iteration_id,
    summed.device,
    summed.clock_id,
    summed.clock_kind,
    iterations.elapsed_ns,
    summed.summed_ns,
    CASE WHEN summed.device IS NOT NULL THEN coalesce(busy.busy_ns, 0) END AS busy_ns,
    CASE WHEN summed.device IS NOT NULL THEN coalesce(busy.exclusive_ns, 0) END AS exclusive_ns,
    CASE WHEN summed.device IS NOT NULL THEN coalesce(busy.busy_ns - busy.exclusive_ns, 0) END AS shared_ns,
    summed.activities AS activity_count
FROM iterations
LEFT JOIN summed USING (run_id, iteration_id)
LEFT JOIN busy USING (run_id, iteration_id, device, clock_id, clock_kind);

COMMENT ON VIEW iteration_gpu_time IS
'Measured GPU time of the activities linked to an iteration, by device clock. Grain: run_id, iteration_id, device, clock_id, clock_kind; an iteration without measured work has one row without a device.';
COMMENT ON COLUMN iteration_gpu_time.run_id IS 'The run.';
COMMENT ON COLUMN iteration_gpu_time.iteration_id IS 'The iteration, as producer/id.';
COMMENT ON COLUMN iteration_gpu_time.device IS 'Device: its UUID in what an engine recorded, its label in a trace; NULL when nothing was measured.';
COMMENT ON COLUMN iteration_gpu_time.clock_id IS 'Clock of the times; NULL likewise.';
COMMENT ON COLUMN iteration_gpu_time.clock_kind IS 'monotonic or device; NULL likewise.';
COMMENT ON COLUMN iteration_gpu_time.elapsed_ns IS 'Host time of the iteration, in nanoseconds; NULL when not recorded, and when a trace has several ranges of it.';
COMMENT ON COLUMN iteration_gpu_time.summed_ns IS 'Sum over its activities; what overlaps counts more than once. NULL when nothing was measured.';
COMMENT ON COLUMN iteration_gpu_time.busy_ns IS 'Nanoseconds in which any of them ran; exclusive_ns and shared_ns together.';
COMMENT ON COLUMN iteration_gpu_time.exclusive_ns IS 'Nanoseconds of these in which no other iteration ran.';
COMMENT ON COLUMN iteration_gpu_time.shared_ns IS 'Nanoseconds in which another iteration ran too; iteration_overlap says which.';
COMMENT ON COLUMN iteration_gpu_time.activity_count IS 'Its measured activities; NULL when there is none.';
