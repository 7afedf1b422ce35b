-- A storage says which span and which operation name allocated it. That names an operation when the span ran exactly
-- one of that name; a second one leaves the storage without an operation, and so does a missing name (protocol 5.2).
WITH named AS (
    SELECT run_id, span_id, op_name, any_value(seq) AS op_seq
    FROM ops
    GROUP BY run_id, span_id, op_name
    HAVING count(*) = 1
)
SELECT
    lifetime.run_id,
    lifetime.alloc_seq,
    named.op_seq,
    lifetime.bytes,
    lifetime.start_timestamp_ns,
    lifetime.end_timestamp_ns
FROM storage_lifetimes AS lifetime
LEFT JOIN named
    ON named.run_id = lifetime.run_id
    AND named.span_id = lifetime.allocation_span_id
    AND named.op_name = lifetime.op_name
WHERE lifetime.category = 'activation';

COMMENT ON VIEW _activation_storages IS
'Storage lifetimes of category activation with the operation that they name uniquely, over the whole trace. Grain: run_id, alloc_seq.';
COMMENT ON COLUMN _activation_storages.run_id IS 'The run.';
COMMENT ON COLUMN _activation_storages.alloc_seq IS 'Position of the first allocation in its source.';
COMMENT ON COLUMN _activation_storages.op_seq IS
'Position of the operation in its source; NULL when no single operation can be named.';
COMMENT ON COLUMN _activation_storages.bytes IS 'Bytes of the storage.';
COMMENT ON COLUMN _activation_storages.start_timestamp_ns IS 'Host time of the first allocation, in nanoseconds.';
COMMENT ON COLUMN _activation_storages.end_timestamp_ns IS
'Host time of the free, in nanoseconds; NULL when no free was recorded.';
