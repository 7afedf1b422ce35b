SELECT run_id FROM runs WHERE source_format = 'nsight-capture'
UNION
SELECT run_id FROM _label_claims SEMI JOIN range_projections USING (run_id);

COMMENT ON VIEW _correlated_runs IS
'Runs whose labels can be held against projected ranges: folders of Nsight artifacts, and runs that have both. Grain: run_id.';
COMMENT ON COLUMN _correlated_runs.run_id IS 'The run.';
