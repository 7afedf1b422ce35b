WITH classes AS (
    SELECT
        run_id,
        list_name,
        label,
        max((list_name <> 'required')::INTEGER) OVER (PARTITION BY run_id) = 1 AS has_classes
    FROM _semantic_label_entries
)
SELECT DISTINCT run_id, label, list_name = 'cpu_only' AS cpu_only
FROM classes
WHERE (list_name = 'required') <> has_classes;

COMMENT ON VIEW _label_claims IS
'The labels that a contract expects to hold device work or to be on the host alone: its class lists, and its required labels where both of these are empty (protocol 12.4). Grain: run_id, label, cpu_only.';
COMMENT ON COLUMN _label_claims.run_id IS 'The run.';
COMMENT ON COLUMN _label_claims.label IS 'The label.';
COMMENT ON COLUMN _label_claims.cpu_only IS 'True for a label of host work alone, false for one that device work is expected of.';
