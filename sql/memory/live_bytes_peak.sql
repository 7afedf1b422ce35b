-- Points where nothing opens or closes cannot be a first maximum, and nothing opens before the first counted
-- allocation; so the changes alone hold every candidate (protocol 5.1). A storage allocated and freed at one instant
-- leaves a candidate of 0 there: its peak is 0, not absent. The grouping sets give the whole run beside each device.
WITH totals AS (
    SELECT
        run_id,
        device,
        count(*) AS storage_allocation_count,
        count(end_timestamp_ns) AS matched_storage_free_count,
        sum(bytes) AS total_allocated_bytes
    FROM storage_lifetimes
    GROUP BY GROUPING SETS ((run_id, device), (run_id))
),
points AS (
    SELECT
        run_id,
        device,
        timestamp_ns,
        sum(sum(bytes)) OVER (
            PARTITION BY run_id, device ORDER BY timestamp_ns ROWS UNBOUNDED PRECEDING
        ) AS live_bytes
    FROM _memory_changes
    GROUP BY GROUPING SETS ((run_id, device, timestamp_ns), (run_id, timestamp_ns))
),
candidates AS (
    SELECT *, max(live_bytes) OVER (PARTITION BY run_id, device) AS peak_live_bytes FROM points
),
peaks AS (
    SELECT run_id, device, any_value(peak_live_bytes) AS peak_live_bytes, min(timestamp_ns) AS peak_timestamp_ns
    FROM candidates
    WHERE live_bytes = peak_live_bytes
    GROUP BY run_id, device
),
observed AS (
    SELECT run_id, device FROM memory_events GROUP BY GROUPING SETS ((run_id, device), (run_id))
)
SELECT
    observed.run_id,
    observed.device,
    coalesce(totals.storage_allocation_count, 0) AS storage_allocation_count,
    coalesce(totals.matched_storage_free_count, 0) AS matched_storage_free_count,
    coalesce(totals.total_allocated_bytes, 0) AS total_allocated_bytes,
    peaks.peak_live_bytes,
    peaks.peak_timestamp_ns
FROM observed
LEFT JOIN totals ON totals.run_id = observed.run_id AND totals.device IS NOT DISTINCT FROM observed.device
LEFT JOIN peaks ON peaks.run_id = observed.run_id AND peaks.device IS NOT DISTINCT FROM observed.device;

COMMENT ON VIEW live_bytes_peak IS
'Totals and peak of live logical storages, over all devices and per device (protocol 5.1). Peaks of devices are reached at different times: they do not add up. Grain: run_id, device; a run without memory events has no row.';
COMMENT ON COLUMN live_bytes_peak.run_id IS 'The run.';
COMMENT ON COLUMN live_bytes_peak.device IS 'Device of the storages; NULL for the row over all devices.';
COMMENT ON COLUMN live_bytes_peak.storage_allocation_count IS 'Number of storage lifetimes; aliases are not counted.';
COMMENT ON COLUMN live_bytes_peak.matched_storage_free_count IS 'Number of lifetimes that a free closed.';
COMMENT ON COLUMN live_bytes_peak.total_allocated_bytes IS 'Sum of the bytes of all lifetimes.';
COMMENT ON COLUMN live_bytes_peak.peak_live_bytes IS
'Largest live bytes after all events of a timestamp; NULL when only unpaired frees were recorded.';
COMMENT ON COLUMN live_bytes_peak.peak_timestamp_ns IS
'Earliest host time at which they were reached, in nanoseconds; NULL without a peak.';
