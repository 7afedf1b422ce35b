-- The class lists are walked GPU first; both empty means that nothing was classified, which is legal.
WITH entries AS (
    SELECT
        *,
        list_name = 'required' AS required,
        row_number() OVER (PARTITION BY run_id, list_name, label ORDER BY position) > 1 AS repeated,
        row_number() OVER (
            PARTITION BY run_id, list_name = 'required', label ORDER BY list_name = 'cpu_only', position
        ) > 1 AS seen,
        bool_or(list_name = 'required') OVER (PARTITION BY run_id, label) AS known,
        bool_or(list_name <> 'required') OVER (PARTITION BY run_id, label) AS classified
    FROM _semantic_label_entries
),
-- One read of the spans, by the few labels that were asked for.
named AS (
    SELECT labels.run_id, labels.label, count(spans.id) AS span_count
    FROM (SELECT DISTINCT run_id, label FROM entries WHERE required) AS labels
    LEFT JOIN spans ON spans.run_id = labels.run_id AND spans.name = labels.label
    GROUP BY labels.run_id, labels.label
),
judged AS (
    SELECT
        run_id,
        label,
        unnest(CASE WHEN required THEN [
            {code: 'empty_required_semantic_label', message: CASE WHEN is_blank(label)
                THEN format('entry {} of the required labels is blank', position) END},
            {code: 'duplicate_required_semantic_label', message: CASE WHEN repeated
                THEN format('entry {} of the required labels repeats an earlier one', position) END},
            {code: 'required_semantic_label_cardinality', message: CASE WHEN span_count <> 1
                THEN format('{} spans have this name; expected 1', span_count) END}
        ] ELSE [
            {code: 'empty_semantic_label_classification', message: CASE WHEN is_blank(label)
                THEN format('entry {} of the {} labels is blank', position, list_name) END},
            {code: 'duplicate_semantic_label_classification', message: CASE WHEN repeated
                THEN format('entry {} of the {} labels repeats an earlier one', position, list_name) END},
            {code: 'unrequired_semantic_label_classification', message: CASE WHEN NOT known
                THEN format('entry {} of the {} labels is no required label', position, list_name) END},
            {code: 'overlapping_semantic_label_classification', message: CASE WHEN seen
                THEN format('entry {} of the {} labels was classified before', position, list_name) END}
        ] END) AS issue
    FROM entries
    LEFT JOIN named USING (run_id, label)
)
SELECT run_id, issue.code AS code, label AS subject, issue.message AS message
FROM judged
WHERE issue.message IS NOT NULL
UNION ALL
SELECT
    run_id,
    'incomplete_semantic_label_partition',
    NULL,
    format(
        '{} required labels are in no class and {} classified labels are not required; expected 0 of both',
        count(DISTINCT label) FILTER (NOT classified), count(DISTINCT label) FILTER (NOT known)
    )
FROM entries
GROUP BY run_id
HAVING bool_or(NOT required) AND bool_or(NOT known OR NOT classified);

COMMENT ON VIEW _health_label_issues IS
'Rules about the semantic labels of a capture contract that are broken. Grain: one list entry and rule; one row a run for the partition.';
COMMENT ON COLUMN _health_label_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_label_issues.code IS 'Health code.';
COMMENT ON COLUMN _health_label_issues.subject IS 'The label; NULL for the partition as a whole.';
COMMENT ON COLUMN _health_label_issues.message IS 'What was found, and what was expected.';
