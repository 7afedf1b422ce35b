SELECT
    run_id,
    spans,
    closed_spans,
    root_spans,
    measured_spans,
    operations,
    tensors,
    memory_events,
    device_memory_samples,
    device_intervals,
    gradients,
    call_edges,
    data_edges,
    forward_spans,
    backward_spans,
    optimizer_spans
FROM _health_run_totals;

COMMENT ON VIEW health_coverage IS
'The fifteen counters of recorded evidence (protocol 3). Zero means that no such record exists, not that nothing happened. Grain: run_id.';
COMMENT ON COLUMN health_coverage.run_id IS 'The run.';
COMMENT ON COLUMN health_coverage.spans IS 'Number of spans.';
COMMENT ON COLUMN health_coverage.closed_spans IS 'Number of spans that ended.';
COMMENT ON COLUMN health_coverage.root_spans IS 'Number of spans without a parent.';
COMMENT ON COLUMN health_coverage.measured_spans IS 'Number of measured spans, ended or not.';
COMMENT ON COLUMN health_coverage.operations IS 'Number of operations.';
COMMENT ON COLUMN health_coverage.tensors IS 'Number of tensor observations.';
COMMENT ON COLUMN health_coverage.memory_events IS 'Number of logical allocations and frees.';
COMMENT ON COLUMN health_coverage.device_memory_samples IS 'Number of physical memory checkpoints.';
COMMENT ON COLUMN health_coverage.device_intervals IS 'Number of device intervals.';
COMMENT ON COLUMN health_coverage.gradients IS 'Number of gradient facts.';
COMMENT ON COLUMN health_coverage.call_edges IS 'Number of call edges.';
COMMENT ON COLUMN health_coverage.data_edges IS 'Number of data edges.';
COMMENT ON COLUMN health_coverage.forward_spans IS 'Number of spans tagged forward.';
COMMENT ON COLUMN health_coverage.backward_spans IS 'Number of spans tagged backward.';
COMMENT ON COLUMN health_coverage.optimizer_spans IS 'Number of spans tagged optimizer.';
