WITH reasons AS (
    SELECT
        comparison_id,
        bool_or(code IN ('identity_missing', 'identity_invalid', 'identity_conditions_differ')) AS no_identity
    FROM comparison_reasons
    GROUP BY comparison_id
),
medians AS (
    SELECT
        comparison_id,
        any_value(median_ns) FILTER (cohort = 'baseline') AS baseline_ns,
        any_value(median_ns) FILTER (cohort = 'candidate') AS candidate_ns
    FROM comparison_statistics
    GROUP BY comparison_id
),
pairs AS (
    SELECT comparison_id, _percentile(list_sort(list(delta_ns)), 0.5::DOUBLE) AS median_delta_ns
    FROM comparison_pairs
    GROUP BY comparison_id
),
implementations AS (
    SELECT
        comparison_id,
        any_value(implementation_id) FILTER (cohort = 'baseline') AS baseline,
        any_value(implementation_id) FILTER (cohort = 'candidate') AS candidate
    FROM _comparison_implementations
    GROUP BY comparison_id
),
joined AS (
    SELECT
        m.comparison_id,
        q.comparison_id IS NULL AS comparable,
        p.comparison_id IS NOT NULL AS paired,
        i.baseline AS baseline_implementation_id,
        i.candidate AS candidate_implementation_id,
        CASE WHEN NOT coalesce(q.no_identity, false) THEN {
            'workload_id': f.identity.workload_id,
            'model_id': f.identity.model_id,
            'config_id': f.identity.config_id,
            'data_id': f.identity.data_id,
            'seed_policy': f.identity.seed_policy,
            'physical_batch': f.identity.physical_batch,
            'accumulation_steps': f.identity.accumulation_steps,
            'precision': f.identity.precision,
            'device_state': f.identity.device_state
        } END AS identity,
        m.baseline_ns,
        coalesce(p.median_delta_ns, m.candidate_ns - m.baseline_ns) AS median_delta_ns
    FROM medians AS m
    LEFT JOIN reasons AS q USING (comparison_id)
    LEFT JOIN pairs AS p USING (comparison_id)
    LEFT JOIN implementations AS i USING (comparison_id)
    LEFT JOIN _comparison_runs AS f ON f.comparison_id = m.comparison_id AND f.run_order = 1
)
SELECT
    * EXCLUDE (baseline_ns),
    CASE WHEN baseline_ns <> 0 THEN median_delta_ns / baseline_ns * 100 END AS median_delta_percent
FROM joined;

COMMENT ON VIEW comparison_summary IS
'Headline of each comparison (protocol 10.5); the interval and the verdict are computed beside it. Grain: comparison_id.';
COMMENT ON COLUMN comparison_summary.comparison_id IS 'The comparison.';
COMMENT ON COLUMN comparison_summary.comparable IS 'True when comparison_reasons has no row for it.';
COMMENT ON COLUMN comparison_summary.paired IS 'True when the runs form a full pairing.';
COMMENT ON COLUMN comparison_summary.baseline_implementation_id IS
'Common implementation id of the baseline; NULL when a reason concerns it.';
COMMENT ON COLUMN comparison_summary.candidate_implementation_id IS
'Common implementation id of the candidate; NULL when a reason concerns it.';
COMMENT ON COLUMN comparison_summary.identity IS
'Common identity without implementation id and pair id; NULL when a reason concerns it.';
COMMENT ON COLUMN comparison_summary.median_delta_ns IS
'Candidate median minus baseline median, or the median of the differences of pairs, in nanoseconds; a claim only when comparable.';
COMMENT ON COLUMN comparison_summary.median_delta_percent IS
'median_delta_ns in percent of the baseline median; NULL when that median is 0.';
