SELECT
    run_id,
    entry.list_name AS list_name,
    generate_subscripts(entry.labels, 1) AS position,
    unnest(entry.labels) AS label
FROM (
    SELECT
        run_id,
        unnest([
            {list_name: 'required', labels: capture_contract.required_semantic_labels},
            {list_name: 'gpu_expected', labels: capture_contract.gpu_expected_semantic_labels},
            {list_name: 'cpu_only', labels: capture_contract.cpu_only_semantic_labels}
        ]) AS entry
    FROM runs
);

COMMENT ON VIEW _semantic_label_entries IS
'One entry of one semantic label list of a capture contract. Grain: run_id, list_name, position.';
COMMENT ON COLUMN _semantic_label_entries.run_id IS 'The run.';
COMMENT ON COLUMN _semantic_label_entries.list_name IS 'required, gpu_expected or cpu_only.';
COMMENT ON COLUMN _semantic_label_entries.position IS 'Place of the entry in its list, from 1.';
COMMENT ON COLUMN _semantic_label_entries.label IS 'The label.';
