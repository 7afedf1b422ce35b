SELECT
    r.entrypoint,
    r.phase,
    r.capture_step,
    r.run_id,
    t.seq,
    t.label,
    t.rms,
    t.abs_max,
    t.mean,
    t.non_finite,
    t.elements
FROM tensor_stats AS t
JOIN runs AS r USING (run_id)
-- A foreign run without a coordinate is a point of no series.
WHERE r.entrypoint IS NOT NULL AND r.capture_step IS NOT NULL;

COMMENT ON VIEW series_tensor_stats IS
'Tensor statistics over capture steps; a label that repeats within a run gives several points (protocol 11.3). Grain: run_id, seq.';
COMMENT ON COLUMN series_tensor_stats.entrypoint IS 'Entrypoint of the run.';
COMMENT ON COLUMN series_tensor_stats.phase IS 'train or infer.';
COMMENT ON COLUMN series_tensor_stats.capture_step IS 'Capture step, the coordinate of a series.';
COMMENT ON COLUMN series_tensor_stats.run_id IS 'The run.';
COMMENT ON COLUMN series_tensor_stats.seq IS 'Position of the record in its source; orders the points of one run.';
COMMENT ON COLUMN series_tensor_stats.label IS 'Label of the summary.';
COMMENT ON COLUMN series_tensor_stats.rms IS 'Root mean square; written as 0 when not finite.';
COMMENT ON COLUMN series_tensor_stats.abs_max IS 'Largest absolute value; written as 0 when not finite.';
COMMENT ON COLUMN series_tensor_stats.mean IS 'Mean; written as 0 when not finite.';
COMMENT ON COLUMN series_tensor_stats.non_finite IS
'Number of NaN or infinite elements; authoritative over the aggregates.';
COMMENT ON COLUMN series_tensor_stats.elements IS 'Number of elements.';
