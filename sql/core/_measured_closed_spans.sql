-- Comparison and series count the spans that are measured and closed (protocol 10.2, 10.3, 11.3); a measured span that
-- never ended takes no part. That is not _measured_region, which wants one measured span altogether.
SELECT
    run_id,
    count(*) AS spans,
    arg_min(duration_ns, seq) AS first_duration_ns
FROM spans
WHERE measured AND duration_ns IS NOT NULL
GROUP BY run_id;

COMMENT ON VIEW _measured_closed_spans IS
'The measured spans of a run that ended. Grain: run_id; a run without any has no row.';
COMMENT ON COLUMN _measured_closed_spans.run_id IS 'The run.';
COMMENT ON COLUMN _measured_closed_spans.spans IS 'Number of measured spans that ended.';
COMMENT ON COLUMN _measured_closed_spans.first_duration_ns IS
'Duration of the first of them in stream order, in nanoseconds.';
