-- The nodes of the graph of protocol 4.5: every span, every operation, and every tensor that anything names.
WITH seen_tensors AS (
    SELECT run_id, tensor_id FROM tensors
    UNION
    SELECT run_id, unnest(inputs) FROM ops
    UNION
    SELECT run_id, output FROM ops WHERE output IS NOT NULL
),
counted AS (SELECT run_id, count(*) AS tensors FROM seen_tensors GROUP BY run_id)
SELECT
    coverage.run_id,
    coverage.spans,
    coverage.operations,
    coalesce(counted.tensors, 0) AS tensors
FROM health_coverage AS coverage
LEFT JOIN counted USING (run_id);

COMMENT ON VIEW _graph_counts IS 'How many nodes the graph of a run has, by what they are (protocol 4.5). Grain: run_id.';
COMMENT ON COLUMN _graph_counts.run_id IS 'The run.';
COMMENT ON COLUMN _graph_counts.spans IS 'Number of spans.';
COMMENT ON COLUMN _graph_counts.operations IS 'Number of operations.';
COMMENT ON COLUMN _graph_counts.tensors IS
'Number of distinct tensor ids among tensor observations and the inputs and outputs of operations.';
