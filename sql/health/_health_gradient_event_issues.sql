-- These rules hold at any declared coverage. A zero norm of the negative sign is not a zero gradient.
WITH judged AS (
    SELECT
        run_id,
        root,
        key,
        event_id,
        row_number() OVER (PARTITION BY run_id, event_id ORDER BY seq) > 1 AS repeated,
        coalesce(CASE state
            WHEN 'present' THEN isfinite(norm) AND norm > 0
            WHEN 'zero' THEN norm = 0 AND NOT signbit(norm)
            WHEN 'missing' THEN norm IS NULL
            WHEN 'non_finite' THEN norm IS NULL
        END, false) AS consistent,
        concat(state, ' with ', CASE WHEN norm IS NULL THEN 'no norm' ELSE concat('the norm ', norm) END) AS found
    FROM gradients
),
issues AS (
    SELECT
        run_id,
        concat(root, '/', key) AS parameter,
        unnest([
            {code: 'empty_gradient_event_id', subject: NULL, message: CASE WHEN is_blank(event_id)
                THEN 'its event id is blank; expected a text' END},
            {code: 'empty_gradient_parameter_key', subject: NULL, message: CASE WHEN is_blank(root) OR is_blank(key)
                THEN concat('event ', event_id, ' has a blank root or key; expected a text in both') END},
            {code: 'duplicate_gradient_event_id', subject: event_id, message: CASE WHEN repeated
                THEN concat('repeated for ', root, '/', key, '; expected one event of this id') END},
            {code: 'gradient_state_norm_inconsistent', subject: NULL, message: CASE WHEN NOT consistent
                THEN concat(
                    found,
                    '; expected present with a finite norm above 0, zero with 0, missing or non_finite with no norm'
                ) END}
        ]) AS issue
    FROM judged
    WHERE repeated OR NOT consistent OR is_blank(event_id) OR is_blank(root) OR is_blank(key)
)
SELECT run_id, issue.code AS code, coalesce(issue.subject, parameter) AS subject, issue.message AS message
FROM issues
WHERE issue.message IS NOT NULL;

COMMENT ON VIEW _health_gradient_event_issues IS
'Rules about single gradient facts that are broken (protocol 8.1). Grain: one fact and rule.';
COMMENT ON COLUMN _health_gradient_event_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_gradient_event_issues.code IS 'Health code.';
COMMENT ON COLUMN _health_gradient_event_issues.subject IS
'The parameter, as root/key; the event id when that is repeated.';
COMMENT ON COLUMN _health_gradient_event_issues.message IS 'What was found, and what was expected.';
