-- Each lifetime is a candidate twice, for the peak over all devices (NULL) and for that of its device. It is live at
-- the peak when it opened by then and closes later: a storage freed at the instant of the peak is already gone.
WITH candidates AS (
    SELECT *, unnest([NULL, device]) AS peak_device FROM storage_lifetimes
)
SELECT
    live.run_id,
    live.peak_device,
    live.device,
    live.storage_id,
    live.tensor_ids,
    live.allocation_span_id,
    live.op_name,
    live.bytes,
    live.shape,
    live.dtype,
    live.category,
    live.start_timestamp_ns,
    live.alloc_seq
FROM candidates AS live
JOIN live_bytes_peak AS peak ON peak.run_id = live.run_id AND peak.device IS NOT DISTINCT FROM live.peak_device
WHERE live.start_timestamp_ns <= peak.peak_timestamp_ns
    AND (live.end_timestamp_ns IS NULL OR live.end_timestamp_ns > peak.peak_timestamp_ns);

COMMENT ON VIEW live_bytes_peak_storages IS
'The storages that are live at a peak (protocol 5.1); their bytes add up to it. Read in the order start_timestamp_ns, device, storage_id, alloc_seq. Grain: run_id, peak_device, alloc_seq.';
COMMENT ON COLUMN live_bytes_peak_storages.run_id IS 'The run.';
COMMENT ON COLUMN live_bytes_peak_storages.peak_device IS
'Device whose peak it is; NULL for the peak over all devices.';
COMMENT ON COLUMN live_bytes_peak_storages.device IS 'Device of the storage.';
COMMENT ON COLUMN live_bytes_peak_storages.storage_id IS 'Backend storage identity.';
COMMENT ON COLUMN live_bytes_peak_storages.tensor_ids IS
'Every tensor that used the storage in its whole lifetime; sorted, each once.';
COMMENT ON COLUMN live_bytes_peak_storages.allocation_span_id IS 'Span of the first allocation.';
COMMENT ON COLUMN live_bytes_peak_storages.op_name IS 'Operation of the first allocation; NULL when not recorded.';
COMMENT ON COLUMN live_bytes_peak_storages.bytes IS 'Bytes of the storage.';
COMMENT ON COLUMN live_bytes_peak_storages.shape IS 'Shape of the first tensor; an empty list is a scalar.';
COMMENT ON COLUMN live_bytes_peak_storages.dtype IS 'Element type of the first tensor.';
COMMENT ON COLUMN live_bytes_peak_storages.category IS 'Semantic category of the storage.';
COMMENT ON COLUMN live_bytes_peak_storages.start_timestamp_ns IS 'Host time of the first allocation, in nanoseconds.';
COMMENT ON COLUMN live_bytes_peak_storages.alloc_seq IS 'Position of the first allocation in its source.';
