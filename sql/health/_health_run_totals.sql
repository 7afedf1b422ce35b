-- One grouped pass a plane serves both the counters and the latest host evidence. Sums of start and duration are
-- HUGEINT because the two may reach past 2^63 - 1 together.
WITH span_totals AS (
    SELECT
        run_id,
        count(*) AS spans,
        count(duration_ns) AS closed_spans,
        count(*) FILTER (parent_id IS NULL) AS root_spans,
        count(*) FILTER (measured) AS measured_spans,
        count(*) FILTER (step = 'forward') AS forward_spans,
        count(*) FILTER (step = 'backward') AS backward_spans,
        count(*) FILTER (step = 'optimizer') AS optimizer_spans,
        max(start_ns::HUGEINT + coalesce(duration_ns, 0)) AS latest_ns
    FROM spans
    GROUP BY run_id
),
op_totals AS (
    SELECT run_id, count(*) AS operations, max(timestamp_ns::HUGEINT + coalesce(duration_ns, 0)) AS latest_ns
    FROM ops
    GROUP BY run_id
),
memory_totals AS (
    SELECT run_id, count(*) AS memory_events, max(timestamp_ns) AS latest_ns FROM memory_events GROUP BY run_id
),
device_memory_totals AS (
    SELECT run_id, count(*) AS device_memory_samples, max(timestamp_ns) AS latest_ns
    FROM device_memory
    GROUP BY run_id
),
tensor_totals AS (
    SELECT run_id, count(*) AS tensors FROM tensors GROUP BY run_id
),
interval_totals AS (
    SELECT run_id, count(*) AS device_intervals FROM device_intervals GROUP BY run_id
),
gradient_totals AS (
    SELECT run_id, count(*) AS gradients FROM gradients GROUP BY run_id
),
edge_totals AS (
    SELECT
        run_id,
        count(*) FILTER (edge_kind = 'call') AS call_edges,
        count(*) FILTER (edge_kind = 'data') AS data_edges
    FROM edges
    GROUP BY run_id
)
SELECT
    runs.run_id,
    coalesce(spans, 0) AS spans,
    coalesce(closed_spans, 0) AS closed_spans,
    coalesce(root_spans, 0) AS root_spans,
    coalesce(measured_spans, 0) AS measured_spans,
    coalesce(operations, 0) AS operations,
    coalesce(tensors, 0) AS tensors,
    coalesce(memory_events, 0) AS memory_events,
    coalesce(device_memory_samples, 0) AS device_memory_samples,
    coalesce(device_intervals, 0) AS device_intervals,
    coalesce(gradients, 0) AS gradients,
    coalesce(call_edges, 0) AS call_edges,
    coalesce(data_edges, 0) AS data_edges,
    coalesce(forward_spans, 0) AS forward_spans,
    coalesce(backward_spans, 0) AS backward_spans,
    coalesce(optimizer_spans, 0) AS optimizer_spans,
    greatest(
        span_totals.latest_ns, op_totals.latest_ns, memory_totals.latest_ns, device_memory_totals.latest_ns
    ) AS latest_evidence_ns
FROM runs
LEFT JOIN span_totals USING (run_id)
LEFT JOIN op_totals USING (run_id)
LEFT JOIN memory_totals USING (run_id)
LEFT JOIN device_memory_totals USING (run_id)
LEFT JOIN tensor_totals USING (run_id)
LEFT JOIN interval_totals USING (run_id)
LEFT JOIN gradient_totals USING (run_id)
LEFT JOIN edge_totals USING (run_id);

COMMENT ON VIEW _health_run_totals IS
'How many records of each kind a run holds, and its latest host evidence. Grain: run_id.';
COMMENT ON COLUMN _health_run_totals.run_id IS 'The run.';
COMMENT ON COLUMN _health_run_totals.spans IS 'Number of spans.';
COMMENT ON COLUMN _health_run_totals.closed_spans IS 'Number of spans that ended.';
COMMENT ON COLUMN _health_run_totals.root_spans IS 'Number of spans without a parent.';
COMMENT ON COLUMN _health_run_totals.measured_spans IS 'Number of measured spans, ended or not.';
COMMENT ON COLUMN _health_run_totals.operations IS 'Number of operations.';
COMMENT ON COLUMN _health_run_totals.tensors IS 'Number of tensor observations.';
COMMENT ON COLUMN _health_run_totals.memory_events IS 'Number of logical allocations and frees.';
COMMENT ON COLUMN _health_run_totals.device_memory_samples IS 'Number of physical memory checkpoints.';
COMMENT ON COLUMN _health_run_totals.device_intervals IS 'Number of device intervals.';
COMMENT ON COLUMN _health_run_totals.gradients IS 'Number of gradient facts.';
COMMENT ON COLUMN _health_run_totals.call_edges IS 'Number of call edges.';
COMMENT ON COLUMN _health_run_totals.data_edges IS 'Number of data edges.';
COMMENT ON COLUMN _health_run_totals.forward_spans IS 'Number of spans tagged forward.';
COMMENT ON COLUMN _health_run_totals.backward_spans IS 'Number of spans tagged backward.';
COMMENT ON COLUMN _health_run_totals.optimizer_spans IS 'Number of spans tagged optimizer.';
COMMENT ON COLUMN _health_run_totals.latest_evidence_ns IS
'Latest host time among span ends, open span starts, op ends, memory events and checkpoints, in nanoseconds; NULL when there is none (protocol 1.3, rule 13).';
