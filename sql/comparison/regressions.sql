WITH nights AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY campaign_id, comparison_id ORDER BY night DESC) AS nights_ago,
        verdict = 'candidate_slower' AS slower,
        coalesce(lag(verdict = 'candidate_slower') OVER (
            PARTITION BY campaign_id, comparison_id ORDER BY night
        ), false) AS was_slower
    FROM comparison_nights
)
SELECT
    campaign_id,
    comparison_id,
    CASE WHEN NOT slower THEN 'fixed' WHEN was_slower THEN 'still_there' ELSE 'new' END AS state,
    night,
    recorded_at,
    candidate_implementation_id,
    baseline_median_ns,
    candidate_median_ns
FROM nights
WHERE nights_ago = 1 AND (slower OR was_slower);

COMMENT ON VIEW regressions IS
'Comparisons whose candidate is slower than the baseline, or was the night before. A night counts when it has other runs than the last. Grain: campaign_id, comparison_id.';
COMMENT ON COLUMN regressions.campaign_id IS 'The campaign.';
COMMENT ON COLUMN regressions.comparison_id IS 'Name of the comparison.';
COMMENT ON COLUMN regressions.state IS 'new (slower since tonight), still_there, or fixed (slower until last night).';
COMMENT ON COLUMN regressions.night IS 'The last night of the comparison.';
COMMENT ON COLUMN regressions.recorded_at IS 'When it was recorded, in UTC.';
COMMENT ON COLUMN regressions.candidate_implementation_id IS 'Implementation of the candidate; NULL when not one.';
COMMENT ON COLUMN regressions.baseline_median_ns IS 'Median of the baseline, in nanoseconds; NULL without runs.';
COMMENT ON COLUMN regressions.candidate_median_ns IS 'Median of the candidate likewise.';
