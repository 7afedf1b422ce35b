SELECT *
FROM comparison_nights
QUALIFY row_number() OVER (PARTITION BY campaign_id, comparison_id ORDER BY night DESC) = 1;

COMMENT ON VIEW cohort_comparisons IS
'What the last night found of every comparison that a campaign declares. Grain: campaign_id, comparison_id.';
COMMENT ON COLUMN cohort_comparisons.campaign_id IS 'The campaign.';
COMMENT ON COLUMN cohort_comparisons.comparison_id IS 'Name of the comparison.';
COMMENT ON COLUMN cohort_comparisons.night IS 'How many nights with other runs there were, this one included.';
COMMENT ON COLUMN cohort_comparisons.recorded_at IS 'When the night was recorded, in UTC.';
COMMENT ON COLUMN cohort_comparisons.runs_sha256 IS 'Digest over the runs of both cohorts and the rule of the verdict.';
COMMENT ON COLUMN cohort_comparisons.verdict IS
'candidate_faster, candidate_slower, no_relevant_change, inconclusive or ineligible.';
COMMENT ON COLUMN cohort_comparisons.baseline_implementation_id IS 'Implementation of the baseline; NULL when not one.';
COMMENT ON COLUMN cohort_comparisons.candidate_implementation_id IS 'Implementation of the candidate; NULL when not one.';
COMMENT ON COLUMN cohort_comparisons.baseline_median_ns IS 'Median of the baseline, in nanoseconds; NULL without runs.';
COMMENT ON COLUMN cohort_comparisons.candidate_median_ns IS 'Median of the candidate likewise.';
COMMENT ON COLUMN cohort_comparisons.lower_delta_ns IS
'Lower bound of the calibrated interval of candidate - baseline, in nanoseconds; NULL without an interval.';
COMMENT ON COLUMN cohort_comparisons.upper_delta_ns IS 'Upper bound likewise.';
