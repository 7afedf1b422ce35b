-- Whether a storage is live depends on the previous event alone: it is after an allocation and is not after a free,
-- however the sizes compare. A lifetime runs from an allocation of a storage that is not live to the next free:
--
--   alloc 8 a | alloc 8 b | alloc 9 c | alloc 8 b | free 9 a | free 8 a
--   opens     | alias     | size      | duplicate | size     | unpaired
--
-- An allocation of another size is ignored by this walk, so its tensor id does not attach.
--
-- One narrow window finds the storages where anything unusual happens; only those are walked in full. Without an
-- allocation of a live storage the previous event of a free is its opening, so comparing with it misses nothing.
WITH neighbours AS (
    SELECT
        run_id, device, storage_id, action, bytes,
        lag(action, 1, 'free') OVER storage AS prior_action,
        lag(bytes) OVER storage AS prior_bytes,
        lead(action) OVER storage IS NULL AND action = 'alloc' AS retained
    FROM memory_events
    WINDOW storage AS (PARTITION BY run_id, device, storage_id ORDER BY timestamp_ns, seq)
),
noticed AS (
    SELECT
        run_id, device, storage_id, retained,
        prior_action = action OR (action = 'free' AND bytes <> prior_bytes) AS unusual
    FROM neighbours
    WHERE unusual OR retained
),
suspects AS (
    SELECT DISTINCT run_id, device, storage_id FROM noticed WHERE unusual
),
sequenced AS (
    SELECT *, lag(action, 1, 'free') OVER storage = 'alloc' AS live
    FROM memory_events
    SEMI JOIN suspects USING (run_id, device, storage_id)
    WINDOW storage AS (PARTITION BY run_id, device, storage_id ORDER BY timestamp_ns, seq)
),
paired AS (
    SELECT
        *,
        last_value(CASE WHEN action = 'alloc' AND NOT live THEN bytes END IGNORE NULLS) OVER storage AS live_bytes,
        last_value(CASE WHEN action = 'alloc' AND NOT live THEN tensor_id END IGNORE NULLS) OVER storage AS opener_id,
        count(CASE WHEN action = 'alloc' AND NOT live THEN 1 END) OVER storage AS lifetime
    FROM sequenced
    WINDOW storage AS (
        PARTITION BY run_id, device, storage_id ORDER BY timestamp_ns, seq ROWS UNBOUNDED PRECEDING
    )
),
found AS (
    SELECT
        *,
        CASE
            WHEN NOT live AND action = 'free' THEN 'unpaired_free'
            WHEN live AND bytes <> live_bytes THEN 'allocation_size_mismatch'
            WHEN live AND action = 'alloc' THEN 'alias'
        END AS finding
    FROM paired
    WHERE finding IS NOT NULL
),
graded AS (
    SELECT
        * REPLACE (
            CASE
                WHEN finding <> 'alias' THEN finding
                WHEN tensor_id = opener_id OR row_number() OVER attached > 1 THEN 'duplicate_allocation'
            END AS finding
        )
    FROM found
    WINDOW attached AS (
        PARTITION BY run_id, device, storage_id, lifetime, finding, tensor_id ORDER BY timestamp_ns, seq
    )
)
SELECT
    run_id,
    finding AS code,
    concat(device, '/', storage_id) AS subject,
    CASE finding
        WHEN 'unpaired_free' THEN format('free at {} ns of a storage that is not live', timestamp_ns)
        WHEN 'duplicate_allocation'
            THEN concat('allocation at ', timestamp_ns, ' ns by tensor ', tensor_id, ', which already uses the storage')
        ELSE concat(action, ' at ', timestamp_ns, ' ns of ', bytes, ' bytes; expected ', live_bytes, ', as allocated')
    END AS message
FROM graded
WHERE finding IS NOT NULL
UNION ALL
SELECT
    run_id,
    'retained_allocations',
    NULL,
    format('{} storages are live at the end; no free was recorded for them', count(*))
FROM noticed
WHERE retained
GROUP BY run_id;

COMMENT ON VIEW _health_memory_issues IS
'Rules about pairing logical allocations and frees by device and storage that are broken. Grain: one event and rule; one row a run for retained storages.';
COMMENT ON COLUMN _health_memory_issues.run_id IS 'The run.';
COMMENT ON COLUMN _health_memory_issues.code IS 'Health code.';
COMMENT ON COLUMN _health_memory_issues.subject IS 'The storage, as device/storage_id; NULL for retained storages.';
COMMENT ON COLUMN _health_memory_issues.message IS 'What was found, and what was expected.';
