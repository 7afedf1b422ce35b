-- What lived before the trace has no time and comes first, so every later number has it in it.
WITH changed AS (
    SELECT run_id, device, category, timestamp_ns, sum(bytes)::HUGEINT AS change
    FROM memory_timeline
    GROUP BY ALL
)
SELECT
    run_id,
    device,
    category,
    timestamp_ns,
    sum(change) OVER (
        PARTITION BY run_id, device, category ORDER BY timestamp_ns NULLS FIRST ROWS UNBOUNDED PRECEDING
    )::HUGEINT AS live_bytes
FROM changed;

COMMENT ON VIEW memory_timeline_live IS
'Live bytes by category over torch.profiler''s memory timeline, after all entries of each time that changes it. Grain: run_id, device, category, timestamp_ns.';
COMMENT ON COLUMN memory_timeline_live.run_id IS 'The run.';
COMMENT ON COLUMN memory_timeline_live.device IS 'Device label; NULL when the export does not say.';
COMMENT ON COLUMN memory_timeline_live.category IS 'Category the profiler gives; NULL when it could not classify.';
COMMENT ON COLUMN memory_timeline_live.timestamp_ns IS 'Time, ns; NULL: before the trace.';
COMMENT ON COLUMN memory_timeline_live.live_bytes IS 'Live bytes of the category.';
