-- Rules about a run as a whole. Each rule is one entry of a list whose message is NULL when the rule holds, so that
-- all of them cost one read of the run and its totals.
WITH judged AS (
    SELECT
        run_id,
        unnest([
            {code: 'run_provenance_invalid', message: CASE
                WHEN is_blank(run_id) THEN 'run_id is blank; expected a text'
                WHEN is_blank(correlation_id) THEN 'correlation_id is blank; expected a text'
                WHEN is_blank(entrypoint) THEN 'entrypoint is blank; expected a text'
                WHEN phase NOT IN ('train', 'infer') THEN format('phase is {}; expected train or infer', phase)
                WHEN is_blank("timestamp") THEN 'timestamp is blank; expected a text'
                WHEN capture_step <= 0 THEN format('capture_step is {}; expected more than 0', capture_step)
                WHEN warmup_steps < 0 THEN format('warmup_steps is {}; expected 0 or more', warmup_steps)
                WHEN warmup_steps >= capture_step
                    THEN format('warmup_steps is {}; expected less than capture_step, {}', warmup_steps, capture_step)
                WHEN is_blank(device) THEN 'device is blank; expected a text'
                WHEN timing_mode NOT IN ('host', 'device_synchronized')
                    THEN format('timing_mode is {}; expected host or device_synchronized', timing_mode)
                ELSE _comparison_identity_fault(comparison_identity)
            END},
            {code: 'complete_with_failure_reason', message: CASE WHEN outcome = 'complete'
                THEN 'outcome is complete with the reason "' || failure_reason || '"; expected no reason' END},
            {code: 'failed_without_reason', message: CASE
                WHEN outcome = 'failed' AND coalesce(is_blank(failure_reason), true)
                    THEN 'outcome is failed and its reason is absent or blank; expected a reason' END},
            {code: 'terminal_precedes_evidence', message: CASE WHEN terminal_timestamp_ns < latest_evidence_ns
                THEN format(
                    'terminal record at {} ns; expected at or after the latest host evidence at {} ns',
                    terminal_timestamp_ns, latest_evidence_ns::VARCHAR
                ) END},
            {code: 'terminal_missing', message: CASE WHEN outcome IS NULL
                THEN 'no terminal record: the capture was interrupted; expected an outcome' END},
            {code: 'capture_failed', message: CASE WHEN outcome = 'failed'
                THEN coalesce(failure_reason, 'no reason recorded') END},
            {code: 'root_count', message: CASE WHEN root_spans <> 1
                THEN format('{} spans without a parent; expected 1', root_spans) END},
            {code: 'measurement_count', message: CASE WHEN measured_spans <> 1
                THEN format('{} measured spans; expected 1', measured_spans) END},
            {code: 'operations_absent', message: CASE WHEN operations = 0
                THEN 'no operation was recorded' END},
            {code: 'tensors_absent', message: CASE WHEN tensors = 0
                THEN 'no tensor was recorded' END},
            {code: 'logical_memory_absent', message: CASE WHEN memory_events = 0
                THEN 'no logical allocation or free was recorded' END},
            {code: 'physical_memory_absent', message: CASE WHEN device_memory_samples = 0
                THEN 'no physical memory checkpoint was recorded' END},
            {code: 'device_timing_absent', message: CASE WHEN device_intervals = 0
                THEN 'no device interval was recorded' END},
            {code: 'gradients_absent', message: CASE WHEN phase = 'train' AND gradients = 0
                THEN 'no gradient was recorded in a training capture' END},
            {code: 'forward_absent', message: CASE WHEN phase = 'train' AND forward_spans = 0
                THEN 'no span is tagged forward in a training capture' END},
            {code: 'backward_absent', message: CASE WHEN phase = 'train' AND backward_spans = 0
                THEN 'no span is tagged backward in a training capture' END},
            {code: 'optimizer_absent', message: CASE WHEN phase = 'train' AND optimizer_spans = 0
                THEN 'no span is tagged optimizer in a training capture' END}
        ]) AS issue
    FROM runs
    JOIN _health_run_totals USING (run_id)
)
SELECT run_id, issue.code AS code, NULL::VARCHAR AS subject, issue.message AS message
FROM judged
WHERE issue.message IS NOT NULL;

COMMENT ON VIEW _health_run_issues IS
'Rules about a run as a whole that it breaks: provenance, outcome, span counts and absent planes. Grain: run_id, code.';
COMMENT ON COLUMN _health_run_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_run_issues.code IS 'Health code.';
COMMENT ON COLUMN _health_run_issues.subject IS 'Always NULL: the run itself is meant.';
COMMENT ON COLUMN _health_run_issues.message IS 'What was found, and what was expected.';
