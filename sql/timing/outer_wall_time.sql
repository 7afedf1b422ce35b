-- The recorded duration, never the sum that stands in for a span of duration 0: this is the figure that comparisons
-- judge. A measured span that never ended takes no part (protocol 7.3).
WITH measured AS (
    SELECT run_id, any_value(id) AS span_id, any_value(duration_ns) AS duration_ns
    FROM spans
    WHERE measured AND duration_ns IS NOT NULL
    GROUP BY run_id
    HAVING count(*) = 1
)
SELECT
    health.run_id,
    measured.span_id,
    measured.duration_ns AS outer_wall_time_ns,
    health.structurally_valid AND health.capture_complete AS qualified
FROM run_health AS health
LEFT JOIN measured USING (run_id);

COMMENT ON VIEW outer_wall_time IS 'Host wall time of the measured region. Grain: run_id; every run has a row.';
COMMENT ON COLUMN outer_wall_time.run_id IS 'The run.';
COMMENT ON COLUMN outer_wall_time.span_id IS 'The measured span; NULL unless exactly one span is measured and closed.';
COMMENT ON COLUMN outer_wall_time.outer_wall_time_ns IS
'Its duration in nanoseconds; NULL unless exactly one span is measured and closed.';
COMMENT ON COLUMN outer_wall_time.qualified IS
'True when the capture is structurally valid and complete; otherwise the time is seen, not claimed.';
