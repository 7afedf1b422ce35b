WITH marked AS (
    SELECT
        run_id,
        device,
        clock_id,
        duration_ns,
        (bits >> (SELECT bit FROM _device_class_bits WHERE class = 'communication')::INTEGER) & 1 = 1 AS communicates,
        (bits >> (SELECT bit FROM _device_class_bits WHERE class = 'compute')::INTEGER) & 1 = 1 AS computes
    FROM _device_class_segments
)
SELECT
    run_id,
    device,
    clock_id,
    coalesce(sum(duration_ns) FILTER (computes), 0) AS compute_ns,
    coalesce(sum(duration_ns) FILTER (communicates), 0) AS communication_ns,
    coalesce(sum(duration_ns) FILTER (communicates AND computes), 0) AS overlapped_ns,
    communication_ns - overlapped_ns AS exposed_ns,
    overlapped_ns / nullif(communication_ns, 0) AS overlap_ratio
FROM marked
GROUP BY run_id, device, clock_id;

COMMENT ON VIEW comm_compute_overlap IS
'How much of the communication of a device clock ran under compute. Grain: run_id, device, clock_id; a clock without work of any length has no row.';
COMMENT ON COLUMN comm_compute_overlap.run_id IS 'The run.';
COMMENT ON COLUMN comm_compute_overlap.device IS 'Device label.';
COMMENT ON COLUMN comm_compute_overlap.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN comm_compute_overlap.compute_ns IS 'Nanoseconds in which compute ran.';
COMMENT ON COLUMN comm_compute_overlap.communication_ns IS 'Nanoseconds in which communication ran.';
COMMENT ON COLUMN comm_compute_overlap.overlapped_ns IS 'Nanoseconds in which both ran.';
COMMENT ON COLUMN comm_compute_overlap.exposed_ns IS 'Nanoseconds of communication without compute beside it.';
COMMENT ON COLUMN comm_compute_overlap.overlap_ratio IS
'overlapped_ns as a part of communication_ns, from 0 to 1; NULL when no communication was recorded.';
