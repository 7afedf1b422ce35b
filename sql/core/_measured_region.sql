-- Only a run with exactly one measured span, and that span closed, has a region to clip to (protocol 4.4).
SELECT
    run_id,
    any_value(id) AS span_id,
    any_value(start_ns) AS start_ns,
    any_value(start_ns + duration_ns) AS end_ns,
    any_value(duration_ns) AS duration_ns
FROM spans
WHERE measured
GROUP BY run_id
HAVING count(*) = 1 AND count(duration_ns) = 1;

COMMENT ON VIEW _measured_region IS
'The one closed measured span of a run. Grain: run_id; runs without exactly one have no row.';
COMMENT ON COLUMN _measured_region.run_id IS 'The run.';
COMMENT ON COLUMN _measured_region.span_id IS 'Id of the measured span.';
COMMENT ON COLUMN _measured_region.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN _measured_region.end_ns IS 'End on the host clock, in nanoseconds (exclusive).';
COMMENT ON COLUMN _measured_region.duration_ns IS 'Duration in nanoseconds.';
