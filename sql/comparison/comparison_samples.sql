SELECT comparison_id, cohort, position, run_id, pair_id, outer_wall_time_ns
FROM _comparison_runs;

COMMENT ON VIEW comparison_samples IS
'One timing sample per run, computed also when the comparison is not eligible (protocol 10.3). Grain: comparison_id, cohort, position.';
COMMENT ON COLUMN comparison_samples.comparison_id IS 'The comparison.';
COMMENT ON COLUMN comparison_samples.cohort IS 'baseline or candidate.';
COMMENT ON COLUMN comparison_samples.position IS 'Input order inside the cohort, from 0.';
COMMENT ON COLUMN comparison_samples.run_id IS 'The run.';
COMMENT ON COLUMN comparison_samples.pair_id IS 'Pair id of the run; NULL when it has none.';
COMMENT ON COLUMN comparison_samples.outer_wall_time_ns IS
'Duration of the first measured closed span in nanoseconds; the protocol writes 0 for a run without one, which comparison_reasons then names.';
