-- Each record of a source has exactly one fate, so what was kept or repaired into a plane are the rows of that plane.
-- A plane that the ledger never names was derived from records that are counted elsewhere; nothing can be held against
-- it. The planes about the source itself (runs, attachments, ingest_issues, ingest_counts) hold no records.
WITH written AS (
    SELECT run_id, 'spans' AS plane, count(*) AS rows FROM spans GROUP BY run_id
    UNION ALL
    SELECT run_id, 'ops' AS plane, count(*) AS rows FROM ops GROUP BY run_id
    UNION ALL
    SELECT run_id, 'tensors' AS plane, count(*) AS rows FROM tensors GROUP BY run_id
    UNION ALL
    SELECT run_id, 'tensor_stats' AS plane, count(*) AS rows FROM tensor_stats GROUP BY run_id
    UNION ALL
    SELECT run_id, 'memory_events' AS plane, count(*) AS rows FROM memory_events GROUP BY run_id
    UNION ALL
    SELECT run_id, 'device_memory' AS plane, count(*) AS rows FROM device_memory GROUP BY run_id
    UNION ALL
    SELECT run_id, 'device_intervals' AS plane, count(*) AS rows FROM device_intervals GROUP BY run_id
    UNION ALL
    SELECT run_id, 'gradients' AS plane, count(*) AS rows FROM gradients GROUP BY run_id
    UNION ALL
    SELECT run_id, 'edges' AS plane, count(*) AS rows FROM edges GROUP BY run_id
    UNION ALL
    SELECT run_id, 'engine_events' AS plane, count(*) AS rows FROM engine_events GROUP BY run_id
    UNION ALL
    SELECT run_id, 'launches' AS plane, count(*) AS rows FROM launches GROUP BY run_id
    UNION ALL
    SELECT run_id, 'collectives' AS plane, count(*) AS rows FROM collectives GROUP BY run_id
    UNION ALL
    SELECT run_id, 'counters' AS plane, count(*) AS rows FROM counters GROUP BY run_id
    UNION ALL
    SELECT run_id, 'allocator_events' AS plane, count(*) AS rows FROM allocator_events GROUP BY run_id
    UNION ALL
    SELECT run_id, 'allocator_segments' AS plane, count(*) AS rows FROM allocator_segments GROUP BY run_id
    UNION ALL
    SELECT run_id, 'allocator_blocks' AS plane, count(*) AS rows FROM allocator_blocks GROUP BY run_id
    UNION ALL
    SELECT run_id, 'memory_timeline' AS plane, count(*) AS rows FROM memory_timeline GROUP BY run_id
    UNION ALL
    SELECT run_id, 'report_rows' AS plane, count(*) AS rows FROM report_rows GROUP BY run_id
    UNION ALL
    SELECT run_id, 'activities' AS plane, count(*) AS rows FROM activities GROUP BY run_id
    UNION ALL
    SELECT run_id, 'execution_nodes' AS plane, count(*) AS rows FROM execution_nodes GROUP BY run_id
    UNION ALL
    SELECT run_id, 'range_projections' AS plane, count(*) AS rows FROM range_projections GROUP BY run_id
),
ledger AS (
    SELECT
        run_id,
        plane,
        sum(records)::BIGINT AS records,
        coalesce(sum(records) FILTER (fate = 'kept'), 0)::BIGINT AS kept,
        coalesce(sum(records) FILTER (fate = 'repaired'), 0)::BIGINT AS repaired,
        coalesce(sum(records) FILTER (fate = 'dropped'), 0)::BIGINT AS dropped
    FROM ingest_counts
    GROUP BY run_id, plane
),
audited AS (
    SELECT DISTINCT run_id FROM ingest_counts
)
SELECT
    run_id,
    plane,
    ledger.records,
    ledger.kept,
    ledger.repaired,
    ledger.dropped,
    CASE WHEN plane IS NOT NULL THEN coalesce(counted.rows, 0) END AS rows,
    ledger.records = ledger.kept + ledger.repaired + ledger.dropped AND (
        plane IS NULL OR (ledger.dropped = 0 AND ledger.kept + ledger.repaired = coalesce(counted.rows, 0))
    ) AS balanced
FROM ledger
FULL JOIN (FROM written SEMI JOIN audited USING (run_id)) AS counted USING (run_id, plane);

COMMENT ON VIEW ingest_audit IS
'The ledger of a foreign trace against the rows of its planes; a row that is not balanced is a fault of the reader. Grain: run_id, plane; a run without a ledger has no row.';
COMMENT ON COLUMN ingest_audit.run_id IS 'The run.';
COMMENT ON COLUMN ingest_audit.plane IS
'The plane; NULL for records that became no row: dropped ones, and those about the run itself.';
COMMENT ON COLUMN ingest_audit.records IS
'Number of records of the source; NULL for a plane that the ledger never names.';
COMMENT ON COLUMN ingest_audit.kept IS 'Number of records kept as they were; NULL as above.';
COMMENT ON COLUMN ingest_audit.repaired IS 'Number of records kept after a stated repair; NULL as above.';
COMMENT ON COLUMN ingest_audit.dropped IS 'Number of records dropped for a stated reason; NULL as above.';
COMMENT ON COLUMN ingest_audit.rows IS 'Number of rows in the plane; NULL where plane is.';
COMMENT ON COLUMN ingest_audit.balanced IS
'True when every record has its fate and the rows are those of the kept and repaired records; NULL when the ledger never names the plane.';
