-- Two passes, because the earliest timestamp wins a tie (protocol 5.3): the extrema, then when each was first seen.
WITH extrema AS (
    SELECT
        *,
        max(used_bytes) OVER device_samples AS peak_used_bytes,
        max(reserved_bytes) OVER device_samples AS peak_reserved_bytes,
        min(free_bytes) OVER device_samples AS minimum_free_bytes
    FROM device_memory
    WINDOW device_samples AS (PARTITION BY run_id, device)
)
SELECT
    run_id,
    device,
    count(*) AS sample_count,
    count(used_bytes) AS used_sample_count,
    count(free_bytes) AS free_sample_count,
    count(reserved_bytes) AS reserved_sample_count,
    count(capacity_bytes) AS capacity_sample_count,
    any_value(peak_used_bytes) AS peak_used_bytes,
    min(timestamp_ns) FILTER (used_bytes = peak_used_bytes) AS peak_used_timestamp_ns,
    any_value(peak_reserved_bytes) AS peak_reserved_bytes,
    min(timestamp_ns) FILTER (reserved_bytes = peak_reserved_bytes) AS peak_reserved_timestamp_ns,
    any_value(minimum_free_bytes) AS minimum_free_bytes,
    min(timestamp_ns) FILTER (free_bytes = minimum_free_bytes) AS minimum_free_timestamp_ns,
    max(capacity_bytes) AS maximum_observed_capacity_bytes
FROM extrema
GROUP BY run_id, device;

COMMENT ON VIEW physical_memory_extrema IS
'Extrema of the physical memory checkpoints (protocol 5.3). The four measurements are never derived from each other, and say nothing about what happened between checkpoints. Grain: run_id, device.';
COMMENT ON COLUMN physical_memory_extrema.run_id IS 'The run.';
COMMENT ON COLUMN physical_memory_extrema.device IS 'Device label.';
COMMENT ON COLUMN physical_memory_extrema.sample_count IS 'Number of checkpoints.';
COMMENT ON COLUMN physical_memory_extrema.used_sample_count IS 'Number of checkpoints with used bytes.';
COMMENT ON COLUMN physical_memory_extrema.free_sample_count IS 'Number of checkpoints with free bytes.';
COMMENT ON COLUMN physical_memory_extrema.reserved_sample_count IS 'Number of checkpoints with reserved bytes.';
COMMENT ON COLUMN physical_memory_extrema.capacity_sample_count IS 'Number of checkpoints with a capacity.';
COMMENT ON COLUMN physical_memory_extrema.peak_used_bytes IS 'Largest used bytes; NULL when never observed.';
COMMENT ON COLUMN physical_memory_extrema.peak_used_timestamp_ns IS
'Earliest host time of the largest used bytes, in nanoseconds; NULL when never observed.';
COMMENT ON COLUMN physical_memory_extrema.peak_reserved_bytes IS 'Largest reserved bytes; NULL when never observed.';
COMMENT ON COLUMN physical_memory_extrema.peak_reserved_timestamp_ns IS
'Earliest host time of the largest reserved bytes, in nanoseconds; NULL when never observed.';
COMMENT ON COLUMN physical_memory_extrema.minimum_free_bytes IS 'Smallest free bytes; NULL when never observed.';
COMMENT ON COLUMN physical_memory_extrema.minimum_free_timestamp_ns IS
'Earliest host time of the smallest free bytes, in nanoseconds; NULL when never observed.';
COMMENT ON COLUMN physical_memory_extrema.maximum_observed_capacity_bytes IS
'Largest capacity observed, in bytes; NULL when never observed.';
