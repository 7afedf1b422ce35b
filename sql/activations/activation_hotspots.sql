WITH qualified AS (
    SELECT
        ops.*,
        storages.storage_count,
        storages.allocated_bytes,
        storages.live_ns,
        storages.byte_nanoseconds,
        storages.retained_bytes
    FROM _activation_operations AS ops
    LEFT JOIN _activation_storage_metrics AS storages ON storages.run_id = ops.run_id AND storages.op_seq = ops.seq
    WHERE ops.tensor_output OR storages.storage_count IS NOT NULL
)
SELECT
    run_id,
    id,
    span_id,
    op_index,
    op_name AS name,
    output AS output_tensor_id,
    shape,
    dtype,
    device,
    duration_ns AS observed_host_duration_ns,
    output_dense_bytes AS dense_output_bytes,
    allocated_bytes AS logical_allocated_bytes,
    storage_count AS logical_storage_count,
    live_ns AS logical_storage_live_duration_ns,
    byte_nanoseconds AS logical_byte_nanoseconds,
    retained_bytes AS logical_retained_bytes_at_measured_end,
    list_where(
        ['tensor_output', 'logical_storage'], [tensor_output, storage_count IS NOT NULL]
    ) AS classification_sources,
    CASE WHEN duration_ns IS NOT NULL THEN
        row_number() OVER (PARTITION BY run_id ORDER BY duration_ns DESC NULLS LAST, id, seq)
    END AS host_rank,
    CASE WHEN output_dense_bytes IS NOT NULL THEN
        row_number() OVER (PARTITION BY run_id ORDER BY output_dense_bytes DESC NULLS LAST, id, seq)
    END AS dense_output_rank,
    CASE WHEN allocated_bytes IS NOT NULL THEN
        row_number() OVER (PARTITION BY run_id ORDER BY allocated_bytes DESC NULLS LAST, id, seq)
    END AS logical_allocated_rank,
    CASE WHEN byte_nanoseconds IS NOT NULL THEN
        row_number() OVER (PARTITION BY run_id ORDER BY byte_nanoseconds DESC NULLS LAST, id, seq)
    END AS logical_byte_nanoseconds_rank
FROM qualified;

COMMENT ON VIEW activation_hotspots IS
'Operations of the measured subtree that produce activations: by the category of their output tensor, or by an activation storage that names them alone (protocol 6). One rank per metric, never merged into a score; every row, callers cut. Grain: run_id, span_id, op_index; runs without exactly one closed measured span have no row.';
COMMENT ON COLUMN activation_hotspots.run_id IS 'The run.';
COMMENT ON COLUMN activation_hotspots.id IS
'The span when the operation is alone in a span of kind op, otherwise span id, /op/ and op_index.';
COMMENT ON COLUMN activation_hotspots.span_id IS 'Span the operation ran in.';
COMMENT ON COLUMN activation_hotspots.op_index IS 'Number of operations of this span before it, from 0.';
COMMENT ON COLUMN activation_hotspots.name IS 'Name of the operation.';
COMMENT ON COLUMN activation_hotspots.output_tensor_id IS 'Output tensor id; NULL when not recorded.';
COMMENT ON COLUMN activation_hotspots.shape IS 'Output shape; an empty list is a scalar; NULL when not recorded.';
COMMENT ON COLUMN activation_hotspots.dtype IS 'Output element type; NULL when not recorded.';
COMMENT ON COLUMN activation_hotspots.device IS 'Device of the output; NULL when not recorded.';
COMMENT ON COLUMN activation_hotspots.observed_host_duration_ns IS
'Host duration of the operation in nanoseconds; on an asynchronous device the time to enqueue it; NULL when not recorded.';
COMMENT ON COLUMN activation_hotspots.dense_output_bytes IS
'Dense output footprint in bytes, not storage; NULL when the dtype is unknown.';
COMMENT ON COLUMN activation_hotspots.logical_allocated_bytes IS
'Bytes of its activation storages; NULL when none names this operation alone, never 0 for that.';
COMMENT ON COLUMN activation_hotspots.logical_storage_count IS 'Number of those storages; NULL as above.';
COMMENT ON COLUMN activation_hotspots.logical_storage_live_duration_ns IS
'Nanoseconds for which they are live inside the measured region, added up; NULL as above.';
COMMENT ON COLUMN activation_hotspots.logical_byte_nanoseconds IS
'Bytes times live nanoseconds inside the measured region, added up exactly; NULL as above.';
COMMENT ON COLUMN activation_hotspots.logical_retained_bytes_at_measured_end IS
'Bytes of the storages not freed by the end of the measured region; NULL as above.';
COMMENT ON COLUMN activation_hotspots.classification_sources IS
'Why the operation qualifies: tensor_output, logical_storage, or both in this order.';
COMMENT ON COLUMN activation_hotspots.host_rank IS
'Place in its run by observed_host_duration_ns, from 1; equal values in the order of id; NULL for a row without it.';
COMMENT ON COLUMN activation_hotspots.dense_output_rank IS
'Place by dense_output_bytes; NULL for a row without them.';
COMMENT ON COLUMN activation_hotspots.logical_allocated_rank IS
'Place by logical_allocated_bytes; NULL for a row without them.';
COMMENT ON COLUMN activation_hotspots.logical_byte_nanoseconds_rank IS
'Place by logical_byte_nanoseconds; NULL for a row without them.';
