-- The n-th collective of a name and group on one rank is the n-th on the others only when all ranks of the job that
-- have it ran it equally often, each on one clock. Otherwise nothing matches them.
WITH args AS (
    SELECT run_id, interval_seq, arg_min(name, seq) AS name, arg_min(group_name, seq) AS group_name
    FROM collectives
    WHERE interval_seq IS NOT NULL
    GROUP BY run_id, interval_seq
),
named AS (
    SELECT
        ranks.correlation_id,
        ranks.rank,
        ranks.run_id,
        coalesce(args.name, work.name) AS name,
        args.group_name,
        work.device,
        work.clock_id,
        work.duration_ns,
        row_number() OVER (
            PARTITION BY ranks.run_id, coalesce(args.name, work.name), args.group_name
            ORDER BY work.start_ns, work.seq
        ) AS occurrence
    FROM device_work AS work
    JOIN _rank_runs AS ranks ON ranks.run_id = work.run_id
    LEFT JOIN args ON args.run_id = work.run_id AND args.interval_seq = work.seq
    WHERE work.class = 'communication'
),
counted AS (
    SELECT
        correlation_id, name, group_name, run_id,
        count(*) AS calls,
        count(DISTINCT {device: device, clock_id: clock_id}) AS clocks
    FROM named
    GROUP BY correlation_id, name, group_name, run_id
),
matched AS (
    SELECT correlation_id, name, group_name
    FROM counted
    GROUP BY correlation_id, name, group_name
    HAVING count(*) > 1 AND min(calls) = max(calls) AND max(clocks) = 1
)
SELECT
    named.correlation_id,
    named.rank,
    named.run_id,
    concat_ws(' @ ', named.name, named.group_name) AS subject,
    named.occurrence,
    named.duration_ns
FROM named
JOIN matched
    ON matched.correlation_id = named.correlation_id
    AND matched.name IS NOT DISTINCT FROM named.name
    AND matched.group_name IS NOT DISTINCT FROM named.group_name;

COMMENT ON VIEW _rank_collectives IS
'Communication work that can be told to be one collective on several ranks. Grain: run_id, subject, occurrence.';
COMMENT ON COLUMN _rank_collectives.correlation_id IS 'The job.';
COMMENT ON COLUMN _rank_collectives.rank IS 'Rank of the run in the job.';
COMMENT ON COLUMN _rank_collectives.run_id IS 'The run.';
COMMENT ON COLUMN _rank_collectives.subject IS 'Name of the collective or of its kernel, with its group where known.';
COMMENT ON COLUMN _rank_collectives.occurrence IS 'Number of the collective among those of its subject, from 1.';
COMMENT ON COLUMN _rank_collectives.duration_ns IS 'Duration on the rank''s own device clock, in nanoseconds.';
