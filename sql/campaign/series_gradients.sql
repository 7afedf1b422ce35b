SELECT
    r.entrypoint,
    r.phase,
    r.capture_step,
    r.run_id,
    g.seq,
    g.root || '/' || g.key AS parameter,
    g.state,
    g.norm
FROM gradients AS g
JOIN runs AS r USING (run_id)
-- A foreign run without a coordinate is a point of no series.
WHERE r.entrypoint IS NOT NULL AND r.capture_step IS NOT NULL;

COMMENT ON VIEW series_gradients IS 'Gradient facts over capture steps (protocol 11.3). Grain: run_id, seq.';
COMMENT ON COLUMN series_gradients.entrypoint IS 'Entrypoint of the run.';
COMMENT ON COLUMN series_gradients.phase IS 'train or infer.';
COMMENT ON COLUMN series_gradients.capture_step IS 'Capture step, the coordinate of a series.';
COMMENT ON COLUMN series_gradients.run_id IS 'The run.';
COMMENT ON COLUMN series_gradients.seq IS 'Position of the record in its source; orders the points of one run.';
COMMENT ON COLUMN series_gradients.parameter IS 'Root and key of the parameter, joined by a slash.';
COMMENT ON COLUMN series_gradients.state IS 'present, missing, zero or non_finite.';
COMMENT ON COLUMN series_gradients.norm IS 'L2 norm; NULL for missing and non_finite.';
