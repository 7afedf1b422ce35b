-- Averages over all events of all runs of a cohort (protocol 10.6). The sums are taken in input and stream order, so
-- that a floating-point sum has one value.
WITH labelled AS (
    SELECT
        m.comparison_id,
        t.label,
        m.cohort,
        sum(t.rms ORDER BY m.position, t.seq) / count(*) AS rms,
        sum(t.abs_max ORDER BY m.position, t.seq) / count(*) AS abs_max,
        sum(t.non_finite)::HUGEINT AS non_finite,
        count(*) AS samples,
        count(DISTINCT m.position) AS runs
    FROM cohort_members AS m
    JOIN tensor_stats AS t ON t.run_id = m.run_id
    GROUP BY m.comparison_id, t.label, m.cohort
),
joined AS (
    SELECT
        coalesce(a.comparison_id, b.comparison_id) AS comparison_id,
        CASE
            WHEN b.label IS NULL THEN 'unmatched_a'
            WHEN a.label IS NULL THEN 'unmatched_b'
            ELSE 'matched'
        END AS matching,
        coalesce(a.label, b.label) AS label,
        a.rms AS rms_a,
        b.rms AS rms_b,
        _ratio(a.rms, b.rms) AS rms_ratio,
        a.abs_max AS abs_max_a,
        b.abs_max AS abs_max_b,
        _ratio(a.abs_max, b.abs_max) AS abs_max_ratio,
        a.non_finite AS non_finite_a,
        b.non_finite AS non_finite_b,
        a.samples AS samples_a,
        b.samples AS samples_b,
        a.runs AS runs_a,
        b.runs AS runs_b
    FROM (FROM labelled WHERE cohort = 'baseline') AS a
    FULL JOIN (FROM labelled WHERE cohort = 'candidate') AS b
        ON b.comparison_id = a.comparison_id AND b.label = a.label
),
distanced AS (
    SELECT
        *,
        CASE
            WHEN matching <> 'matched' THEN 0
            WHEN rms_ratio > 0 THEN abs(ln(rms_ratio))
            ELSE 'infinity'::DOUBLE
        END AS distance
    FROM joined
)
SELECT
    comparison_id,
    matching,
    row_number() OVER (PARTITION BY comparison_id, matching ORDER BY distance DESC, label) AS row_order,
    * EXCLUDE (comparison_id, matching, distance)
FROM distanced;

COMMENT ON VIEW comparison_tensor_stats IS
'Tensor statistics of both cohorts, joined by label, independent of eligibility (protocol 10.6). Grain: comparison_id, label.';
COMMENT ON COLUMN comparison_tensor_stats.comparison_id IS 'The comparison.';
COMMENT ON COLUMN comparison_tensor_stats.matching IS
'matched, unmatched_a (only the baseline has the label) or unmatched_b (only the candidate).';
COMMENT ON COLUMN comparison_tensor_stats.row_order IS
'Order inside one matching, from 1: the largest change of rms first, then the label.';
COMMENT ON COLUMN comparison_tensor_stats.label IS 'The label.';
COMMENT ON COLUMN comparison_tensor_stats.rms_a IS
'Mean rms over the events of the baseline; NULL when it lacks the label.';
COMMENT ON COLUMN comparison_tensor_stats.rms_b IS
'Mean rms over the events of the candidate; NULL when it lacks the label.';
COMMENT ON COLUMN comparison_tensor_stats.rms_ratio IS
'rms_b / rms_a; 1 when both are 0; NULL when only rms_a is 0, the quotient is no finite number, or the label is unmatched.';
COMMENT ON COLUMN comparison_tensor_stats.abs_max_a IS
'Mean abs_max over the events of the baseline; NULL when it lacks the label.';
COMMENT ON COLUMN comparison_tensor_stats.abs_max_b IS
'Mean abs_max over the events of the candidate; NULL when it lacks the label.';
COMMENT ON COLUMN comparison_tensor_stats.abs_max_ratio IS 'abs_max_b / abs_max_a, by the rule of rms_ratio.';
COMMENT ON COLUMN comparison_tensor_stats.non_finite_a IS
'Non-finite elements over the events of the baseline; NULL when it lacks the label.';
COMMENT ON COLUMN comparison_tensor_stats.non_finite_b IS
'Non-finite elements over the events of the candidate; NULL when it lacks the label.';
COMMENT ON COLUMN comparison_tensor_stats.samples_a IS
'Number of events of the baseline; NULL when it lacks the label.';
COMMENT ON COLUMN comparison_tensor_stats.samples_b IS
'Number of events of the candidate; NULL when it lacks the label.';
COMMENT ON COLUMN comparison_tensor_stats.runs_a IS 'Number of baseline runs with the label; NULL when none has it.';
COMMENT ON COLUMN comparison_tensor_stats.runs_b IS 'Number of candidate runs with the label; NULL when none has it.';
