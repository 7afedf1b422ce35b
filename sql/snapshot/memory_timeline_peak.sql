WITH changed AS (
    SELECT run_id, device, timestamp_ns, sum(bytes)::HUGEINT AS change FROM memory_timeline GROUP BY ALL
),
walked AS (
    SELECT
        run_id,
        device,
        timestamp_ns,
        sum(change) OVER (
            PARTITION BY run_id, device ORDER BY timestamp_ns NULLS FIRST ROWS UNBOUNDED PRECEDING
        )::HUGEINT AS live_bytes
    FROM changed
)
SELECT
    run_id,
    device,
    live_bytes AS peak_live_bytes,
    timestamp_ns AS peak_timestamp_ns
FROM walked
QUALIFY row_number() OVER (PARTITION BY run_id, device ORDER BY live_bytes DESC, timestamp_ns NULLS FIRST) = 1;

COMMENT ON VIEW memory_timeline_peak IS
'Peak of live bytes over all categories of torch.profiler''s memory timeline. Grain: run_id, device.';
COMMENT ON COLUMN memory_timeline_peak.run_id IS 'The run.';
COMMENT ON COLUMN memory_timeline_peak.device IS 'Device label; NULL when the export does not say.';
COMMENT ON COLUMN memory_timeline_peak.peak_live_bytes IS 'Highest live bytes, after all entries of a time.';
COMMENT ON COLUMN memory_timeline_peak.peak_timestamp_ns IS 'First time with the peak, ns; NULL: before the trace.';
