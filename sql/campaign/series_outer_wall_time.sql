SELECT
    r.entrypoint,
    r.phase,
    r.capture_step,
    r.run_id,
    CASE WHEN s.spans = 1 THEN s.first_duration_ns END AS outer_wall_time_ns
FROM runs AS r
LEFT JOIN _measured_closed_spans AS s USING (run_id)
-- A foreign run without a coordinate is a point of no series.
WHERE r.entrypoint IS NOT NULL AND r.capture_step IS NOT NULL;

COMMENT ON VIEW series_outer_wall_time IS
'Outer wall time over capture steps (protocol 11.3); the outcome of a run is not examined. Grain: run_id.';
COMMENT ON COLUMN series_outer_wall_time.entrypoint IS 'Entrypoint of the run.';
COMMENT ON COLUMN series_outer_wall_time.phase IS 'train or infer.';
COMMENT ON COLUMN series_outer_wall_time.capture_step IS 'Capture step, the coordinate of a series.';
COMMENT ON COLUMN series_outer_wall_time.run_id IS 'The run.';
COMMENT ON COLUMN series_outer_wall_time.outer_wall_time_ns IS
'Duration of the measured span in nanoseconds; NULL unless exactly one span is measured and closed.';
