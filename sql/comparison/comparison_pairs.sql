SELECT
    b.comparison_id,
    b.pair_id,
    b.outer_wall_time_ns AS baseline_ns,
    c.outer_wall_time_ns AS candidate_ns,
    c.outer_wall_time_ns - b.outer_wall_time_ns AS delta_ns
FROM comparison_samples AS b
JOIN comparison_samples AS c ON c.comparison_id = b.comparison_id AND c.pair_id = b.pair_id
JOIN _comparison_pairing AS p ON p.comparison_id = b.comparison_id
WHERE b.cohort = 'baseline' AND c.cohort = 'candidate' AND p.code IS NULL;

COMMENT ON VIEW comparison_pairs IS
'The pairs of a comparison whose runs form a full pairing; no rows for any other. Grain: comparison_id, pair_id.';
COMMENT ON COLUMN comparison_pairs.comparison_id IS 'The comparison.';
COMMENT ON COLUMN comparison_pairs.pair_id IS 'The pair.';
COMMENT ON COLUMN comparison_pairs.baseline_ns IS 'Outer wall time of the baseline run in nanoseconds.';
COMMENT ON COLUMN comparison_pairs.candidate_ns IS 'Outer wall time of the candidate run in nanoseconds.';
COMMENT ON COLUMN comparison_pairs.delta_ns IS
'Candidate minus baseline, in nanoseconds; negative when the candidate was faster.';
