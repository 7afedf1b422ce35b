-- All events of one lifetime have the same number of frees before them, and an unpaired free shares that number with no
-- allocation. So one running count pairs them (protocol 5.1):
--
--   event         alloc a | alloc b | free a | free a   | alloc c
--   frees before  0       | 0       | 0      | 1        | 2
--                 lifetime 0                 | unpaired | lifetime 2
--
-- The first row of a lifetime opens it. Only its bytes, shape, dtype and category count, whatever an alias says.
WITH numbered AS (
    SELECT
        *,
        count(*) FILTER (action = 'free') OVER (earlier ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS lifetime,
        action = 'alloc' AND lag(action, 1, 'free') OVER earlier = 'free' AS opens
    FROM memory_events
    WINDOW earlier AS (PARTITION BY run_id, device, storage_id ORDER BY timestamp_ns, seq)
)
SELECT
    run_id,
    device,
    storage_id,
    list(DISTINCT tensor_id ORDER BY tensor_id) FILTER (tensor_id IS NOT NULL) AS tensor_ids,
    any_value(span_id) FILTER (opens) AS allocation_span_id,
    any_value(op_name) FILTER (opens) AS op_name,
    any_value(bytes) FILTER (opens) AS bytes,
    any_value(shape) FILTER (opens) AS shape,
    any_value(dtype) FILTER (opens) AS dtype,
    any_value(category) FILTER (opens) AS category,
    any_value(timestamp_ns) FILTER (opens) AS start_timestamp_ns,
    any_value(timestamp_ns) FILTER (action = 'free') AS end_timestamp_ns,
    any_value(seq) FILTER (opens) AS alloc_seq
FROM numbered
GROUP BY run_id, device, storage_id, lifetime
HAVING bool_or(opens);

COMMENT ON VIEW storage_lifetimes IS
'One logical storage from its first allocation to its free (protocol 5.1). Read in the order start_timestamp_ns, device, storage_id, alloc_seq. Grain: run_id, alloc_seq.';
COMMENT ON COLUMN storage_lifetimes.run_id IS 'The run.';
COMMENT ON COLUMN storage_lifetimes.device IS
'Device of the storage; equal storage ids on two devices are two storages.';
COMMENT ON COLUMN storage_lifetimes.storage_id IS 'Backend storage identity; one storage may live several times.';
COMMENT ON COLUMN storage_lifetimes.tensor_ids IS
'Every tensor that used the storage, aliases and the freeing one among them; sorted, each once.';
COMMENT ON COLUMN storage_lifetimes.allocation_span_id IS 'Span of the first allocation.';
COMMENT ON COLUMN storage_lifetimes.op_name IS 'Operation of the first allocation; NULL when not recorded.';
COMMENT ON COLUMN storage_lifetimes.bytes IS 'Bytes of the first allocation; an alias never changes them.';
COMMENT ON COLUMN storage_lifetimes.shape IS 'Shape of the first tensor; an empty list is a scalar.';
COMMENT ON COLUMN storage_lifetimes.dtype IS 'Element type of the first tensor.';
COMMENT ON COLUMN storage_lifetimes.category IS
'Semantic category of the first allocation: parameter, activation, gradient, optimizer or other.';
COMMENT ON COLUMN storage_lifetimes.start_timestamp_ns IS 'Host time of the first allocation, in nanoseconds.';
COMMENT ON COLUMN storage_lifetimes.end_timestamp_ns IS
'Host time of the free, in nanoseconds; NULL when no free was recorded.';
COMMENT ON COLUMN storage_lifetimes.alloc_seq IS 'Position of the first allocation in its source.';
