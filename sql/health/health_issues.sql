WITH found AS (
    FROM _health_run_issues
    UNION ALL FROM _health_span_issues
    UNION ALL FROM _health_record_issues
    UNION ALL FROM _health_edge_issues
    UNION ALL FROM _health_memory_issues
    UNION ALL FROM _health_gradient_event_issues
    UNION ALL FROM _health_gradient_contract_issues
    UNION ALL FROM _health_label_issues
    UNION ALL FROM _health_ingest_issues
),
graded AS (
    SELECT
        found.run_id,
        CASE
            WHEN _is_foreign(runs.source_format) THEN severity_foreign
            WHEN runs.outcome = 'complete' THEN severity_complete
            ELSE severity_failed
        END AS severity,
        found.code,
        code_order,
        subject,
        message
    FROM found
    JOIN runs USING (run_id)
    JOIN _health_codes USING (code)
)
FROM graded
WHERE severity IS NOT NULL;

COMMENT ON VIEW health_issues IS
'One broken rule of structural health (protocol 3 and 8.2); read in the order code_order, subject. Grain: one offending entry, repetition, span or record.';
COMMENT ON COLUMN health_issues.run_id IS 'The run.';
COMMENT ON COLUMN health_issues.severity IS 'error or warning, as the outcome of the capture grades the code, or as it is graded in a foreign trace.';
COMMENT ON COLUMN health_issues.code IS 'Stable snake_case code.';
COMMENT ON COLUMN health_issues.code_order IS 'Place of the code in detection order, from 1.';
COMMENT ON COLUMN health_issues.subject IS
'What is meant: a span id, label, device, device/storage_id, event id, root/key, family or from->to; NULL for the run.';
COMMENT ON COLUMN health_issues.message IS 'What was found, and what was expected.';
