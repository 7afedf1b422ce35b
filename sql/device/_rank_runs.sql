-- Two runs that claim one rank are no job: nothing says which of them the others waited for.
-- A capture has its rank as a tag that torchrun's plan gave it.
WITH ranked AS (
    SELECT
        run_id,
        correlation_id,
        CASE WHEN source_format = 'capture' THEN TRY_CAST(tags['rank'] AS BIGINT) ELSE rank END AS rank
    FROM runs
),
jobs AS (
    SELECT correlation_id
    FROM ranked
    WHERE rank IS NOT NULL
    GROUP BY correlation_id
    HAVING count(*) > 1 AND count(*) = count(DISTINCT rank)
)
SELECT run_id, correlation_id, rank
FROM ranked
SEMI JOIN jobs USING (correlation_id)
WHERE rank IS NOT NULL;

COMMENT ON VIEW _rank_runs IS
'Runs of jobs of several ranks: they share a correlation id, and each has a rank of its own. Grain: run_id.';
COMMENT ON COLUMN _rank_runs.run_id IS 'The run.';
COMMENT ON COLUMN _rank_runs.correlation_id IS 'The job.';
COMMENT ON COLUMN _rank_runs.rank IS 'Rank of the run in the job.';
