-- Only work of a GPU that is named, on a clock that measures, with both ends. Its own busy intervals count where it has
-- them, else its whole span.
WITH measured AS (
    SELECT
        run_id,
        seq,
        device,
        clock_id,
        clock_kind,
        start_ns,
        unnest(CASE
            WHEN interval_offsets IS NULL THEN [{'at': 0::BIGINT, 'took': duration_ns}]
            ELSE list_transform(
                range(1, len(interval_offsets) + 1),
                lambda place: {'at': interval_offsets[place], 'took': interval_durations[place]}
            )
        END) AS part
    FROM activities
    WHERE domain = 'gpu' AND device IS NOT NULL AND clock_kind IN ('monotonic', 'device') AND duration_ns IS NOT NULL
)
SELECT
    measured.run_id,
    measured.seq,
    measured.device,
    measured.clock_id,
    measured.clock_kind,
    CASE WHEN known.iteration_id IS NOT NULL THEN link.iteration_id END AS iteration_id,
    CASE WHEN link.iteration_id IS NOT NULL AND known.iteration_id IS NULL THEN 'iteration_not_recorded'
        ELSE link.reason
    END AS reason,
    measured.start_ns::HUGEINT + measured.part.at AS start_ns,
    measured.start_ns::HUGEINT + measured.part.at + measured.part.took AS end_ns
FROM measured
JOIN activity_links AS link ON link.run_id = measured.run_id AND link.seq = measured.seq
LEFT JOIN (
    SELECT DISTINCT run_id, iteration_id FROM engine_events WHERE event_type = 'infer.iteration'
) AS known ON known.run_id = link.run_id AND known.iteration_id = link.iteration_id
UNION ALL
SELECT
    work.run_id,
    work.seq,
    work.device,
    work.clock_id,
    'device',
    link.iteration_id,
    link.reason,
    work.start_ns::HUGEINT,
    work.start_ns::HUGEINT + work.duration_ns
FROM launch_iteration_links AS link
JOIN device_intervals AS work ON work.run_id = link.run_id AND work.seq = link.seq;

COMMENT ON VIEW _busy_intervals IS
'Measured busy intervals of activities, and of the device work of traces with iteration ranges, with the iteration that owns them. Grain: run_id, seq, start_ns.';
COMMENT ON COLUMN _busy_intervals.run_id IS 'The run.';
COMMENT ON COLUMN _busy_intervals.seq IS 'seq of the activity, or of the device interval.';
COMMENT ON COLUMN _busy_intervals.device IS 'Device: its UUID in what an engine recorded, its label in a trace.';
COMMENT ON COLUMN _busy_intervals.clock_id IS 'Clock of the times.';
COMMENT ON COLUMN _busy_intervals.clock_kind IS 'monotonic or device.';
COMMENT ON COLUMN _busy_intervals.iteration_id IS 'Recorded iteration that owns it; NULL: none.';
COMMENT ON COLUMN _busy_intervals.reason IS 'Why none owns it; NULL when one does.';
COMMENT ON COLUMN _busy_intervals.start_ns IS 'Start, in nanoseconds.';
COMMENT ON COLUMN _busy_intervals.end_ns IS 'End, in nanoseconds.';
