SELECT run_id, span_id, scope FROM _measured_scope WHERE scope = 'measured_subtree';

COMMENT ON VIEW _measured_subtree IS
'The measured span and every span below it (protocol 4.4). Grain: run_id, span_id; runs without exactly one closed measured span have no row.';
COMMENT ON COLUMN _measured_subtree.run_id IS 'The run.';
COMMENT ON COLUMN _measured_subtree.span_id IS 'The span.';
COMMENT ON COLUMN _measured_subtree.scope IS 'Always measured_subtree, as in slowest_host.';
