-- A folder names the run it was made beside; that run is looked up in the same store. The order of reasons is that of
-- protocol 12.4: what the folder says against itself, then ids, then labels.
WITH folders AS (
    SELECT run_id, correlation_id, tags['nsight.run_id'] AS trace_run_id
    FROM runs
    WHERE source_format = 'nsight-capture'
),
lists AS (
    SELECT run_id, list_name, list(label ORDER BY label) AS labels
    FROM (
        SELECT DISTINCT run_id, 'required' AS list_name, label
        FROM _semantic_label_entries
        WHERE list_name = 'required'
        UNION
        SELECT run_id, CASE WHEN cpu_only THEN 'cpu_only' ELSE 'gpu_expected' END, label
        FROM _label_claims
    )
    GROUP BY run_id, list_name
),
faults AS (
    SELECT run_id, 1 AS reason_order, code AS reason
    FROM ingest_issues
    SEMI JOIN folders USING (run_id)
    WHERE severity = 'error'
    UNION
    SELECT folders.run_id, 2, 'correlation_id_differs'
    FROM folders
    JOIN runs AS trace ON trace.run_id = folders.trace_run_id
    WHERE trace.correlation_id <> folders.correlation_id
    UNION
    SELECT folders.run_id, 3, names.list_name || '_labels_differ'
    FROM folders
    JOIN runs AS trace ON trace.run_id = folders.trace_run_id
    CROSS JOIN (VALUES ('required'), ('gpu_expected'), ('cpu_only')) AS names (list_name)
    LEFT JOIN lists AS declared ON declared.run_id = folders.run_id AND declared.list_name = names.list_name
    LEFT JOIN lists AS contracted ON contracted.run_id = trace.run_id AND contracted.list_name = names.list_name
    WHERE declared.labels IS DISTINCT FROM contracted.labels
),
mismatches AS (
    SELECT run_id, list(reason ORDER BY reason_order, reason) AS reasons FROM faults GROUP BY run_id
)
SELECT
    folders.run_id,
    trace.run_id AS trace_run_id,
    CASE
        WHEN mismatches.reasons IS NOT NULL THEN 'mismatch'
        WHEN trace.run_id IS NULL THEN 'partial'
        ELSE 'bound'
    END AS binding,
    coalesce(mismatches.reasons, CASE
        WHEN folders.trace_run_id IS NULL THEN ['manifest_absent']
        WHEN trace.run_id IS NULL THEN ['trace_not_in_store']
        ELSE []
    END) AS reasons
FROM folders
LEFT JOIN runs AS trace ON trace.run_id = folders.trace_run_id
LEFT JOIN mismatches ON mismatches.run_id = folders.run_id;

COMMENT ON VIEW nsight_bindings IS
'Whether a folder of Nsight artifacts belongs to the run that its manifest names (protocol 12.4). Grain: run_id, one row per folder.';
COMMENT ON COLUMN nsight_bindings.run_id IS 'The run that the folder was ingested as.';
COMMENT ON COLUMN nsight_bindings.trace_run_id IS
'The run that its manifest names; NULL when that run is not in the store or there is no manifest that can be read.';
COMMENT ON COLUMN nsight_bindings.binding IS
'bound, mismatch (at least one reason against it), or partial (there is nothing to hold it against).';
COMMENT ON COLUMN nsight_bindings.reasons IS
'Codes of what speaks against it or is missing, in the order of protocol 12.4; empty when bound.';
