-- Every kind of record that names a span goes through one join with the spans. Device intervals and observations have
-- no host time, so their times are NULL and never outside. The bounds of a span are inside it. A record that names no
-- span at all (only foreign traces hold such) is in no wrong one.
WITH observed AS (
    SELECT
        run_id,
        span_id,
        'operation' AS kind,
        op_name AS name,
        NULL AS device,
        timestamp_ns AS start_ns,
        timestamp_ns::HUGEINT + duration_ns AS end_ns,
        false AS empty
    FROM ops
    UNION ALL
    SELECT run_id, span_id, 'tensor', tensor_id, NULL, NULL, NULL, false FROM tensors
    UNION ALL
    SELECT run_id, span_id, 'tensor statistic', label, NULL, NULL, NULL, false FROM tensor_stats
    UNION ALL
    SELECT run_id, span_id, 'memory event', storage_id, device, timestamp_ns, timestamp_ns, false FROM memory_events
    UNION ALL
    SELECT run_id, span_id, 'device interval', clock_id, device, NULL, NULL, duration_ns = 0 FROM device_intervals
),
suspicious AS (
    SELECT
        observed.*,
        found.id IS NULL AND observed.span_id IS NOT NULL AS span_unknown,
        found.start_ns AS span_start_ns,
        found.end_ns AS span_end_ns,
        coalesce(
            found.end_ns IS NOT NULL AND (observed.start_ns < found.start_ns OR observed.end_ns > found.end_ns), false
        ) AS outside
    FROM observed
    LEFT JOIN _health_span_index AS found ON found.run_id = observed.run_id AND found.id = observed.span_id
    WHERE span_unknown OR outside OR empty
),
described AS (
    SELECT *, concat(kind, ' ', device || '/', name) AS what FROM suspicious
),
judged AS (
    SELECT
        run_id,
        span_id,
        unnest([
            {code: 'unknown_span', message: CASE WHEN span_unknown
                THEN concat(what, ' names the span ', span_id, '; expected the id of a span') END},
            {code: 'empty_device_interval', message: CASE WHEN empty
                THEN concat(what, ' has a duration of 0 ns; expected more than 0') END},
            {
                code: CASE kind WHEN 'operation' THEN 'operation_outside_span' ELSE 'memory_outside_span' END,
                message: CASE WHEN outside THEN concat(
                    what, ' at [', start_ns, ', ', end_ns, '] ns; expected inside its span, [',
                    span_start_ns, ', ', span_end_ns, '] ns'
                ) END
            }
        ]) AS issue
    FROM described
)
SELECT run_id, issue.code AS code, span_id AS subject, issue.message AS message
FROM judged
WHERE issue.message IS NOT NULL
UNION ALL
SELECT
    run_id,
    'empty_device_memory_sample',
    device,
    format('checkpoint at {} ns holds no value; expected used, free, reserved or capacity bytes', timestamp_ns)
FROM device_memory
WHERE coalesce(used_bytes, free_bytes, reserved_bytes, capacity_bytes) IS NULL;

COMMENT ON VIEW _health_record_issues IS
'Rules about single records and the spans they name that are broken. Grain: one record and rule.';
COMMENT ON COLUMN _health_record_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_record_issues.code IS 'Health code.';
COMMENT ON COLUMN _health_record_issues.subject IS
'Id of the span the record names; the device of an empty checkpoint.';
COMMENT ON COLUMN _health_record_issues.message IS 'What was found, and what was expected.';
