SELECT run_id, external_id, min(seq) AS seq, arg_min(op_name, seq) AS op_name
FROM ops
WHERE external_id IS NOT NULL
GROUP BY run_id, external_id;

COMMENT ON VIEW _external_ops IS
'The operation that an external id means: the first one that carries it. Grain: run_id, external_id.';
COMMENT ON COLUMN _external_ops.run_id IS 'The run.';
COMMENT ON COLUMN _external_ops.external_id IS 'Id that launches and device work repeat.';
COMMENT ON COLUMN _external_ops.seq IS 'Position of the operation in its source.';
COMMENT ON COLUMN _external_ops.op_name IS 'Name of the operation.';
