WITH gathered AS (
    SELECT
        c.comparison_id,
        c.cohort,
        c.runs,
        coalesce(
            list(s.outer_wall_time_ns ORDER BY s.position) FILTER (s.run_id IS NOT NULL), []
        )::BIGINT[] AS samples_ns
    FROM _comparison_cohorts AS c
    LEFT JOIN comparison_samples AS s USING (comparison_id, cohort)
    GROUP BY c.comparison_id, c.cohort, c.runs
),
centred AS (
    SELECT *, list_sort(samples_ns) AS ordered, _percentile(list_sort(samples_ns), 0.5::DOUBLE) AS median_ns
    FROM gathered
)
SELECT
    comparison_id,
    cohort,
    runs,
    samples_ns,
    median_ns,
    _percentile(ordered, 0.95::DOUBLE) AS p95_ns,
    -- round() of a DOUBLE goes half away from zero, as the protocol wants.
    _percentile(
        list_sort(list_transform(ordered, lambda ns: abs(ns::HUGEINT - round(median_ns)::HUGEINT))), 0.5::DOUBLE
    ) AS mad_ns
FROM centred;

COMMENT ON VIEW comparison_statistics IS
'Statistics of the samples of each cohort, computed also when the comparison is not eligible (protocol 10.3). Grain: comparison_id, cohort.';
COMMENT ON COLUMN comparison_statistics.comparison_id IS 'The comparison.';
COMMENT ON COLUMN comparison_statistics.cohort IS 'baseline or candidate.';
COMMENT ON COLUMN comparison_statistics.runs IS 'Number of runs in the cohort.';
COMMENT ON COLUMN comparison_statistics.samples_ns IS
'Samples in nanoseconds, in input order; empty for an empty cohort.';
COMMENT ON COLUMN comparison_statistics.median_ns IS
'Median of the samples in nanoseconds; the protocol writes 0 for an empty cohort.';
COMMENT ON COLUMN comparison_statistics.p95_ns IS
'95th percentile by linear interpolation, in nanoseconds; 0 for an empty cohort.';
COMMENT ON COLUMN comparison_statistics.mad_ns IS
'Median absolute deviation from the rounded median, in nanoseconds; 0 for an empty cohort.';
