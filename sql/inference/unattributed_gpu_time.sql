SELECT run_id, device, clock_id, clock_kind, array_to_string(reasons, '+') AS reason, sum(duration_ns) AS busy_ns
FROM _busy_segments
WHERE iterations IS NULL
GROUP BY ALL;

COMMENT ON VIEW unattributed_gpu_time IS
'Busy time of a device clock that no recorded iteration owns, by reason; the exact remainder of the clock. Grain: run_id, device, clock_id, clock_kind, reason.';
COMMENT ON COLUMN unattributed_gpu_time.run_id IS 'The run.';
COMMENT ON COLUMN unattributed_gpu_time.device IS 'Device: its UUID in what an engine recorded, its label in a trace.';
COMMENT ON COLUMN unattributed_gpu_time.clock_id IS 'Clock of the times.';
COMMENT ON COLUMN unattributed_gpu_time.clock_kind IS 'monotonic or device.';
COMMENT ON COLUMN unattributed_gpu_time.reason IS
'Reason of activity_links, or iteration_not_recorded; several joined by + where such activities overlap.';
COMMENT ON COLUMN unattributed_gpu_time.busy_ns IS 'Nanoseconds.';
