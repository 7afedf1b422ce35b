-- Durations only: clocks of two ranks share no axis, so no time of one is ever subtracted from a time of another. The
-- rank that a collective waited for is the one on which it was short: it came last and left at once.
--
-- A rank with several device clocks is seen on its busiest one; busy times of two clocks do not add up.
WITH steps AS (
    SELECT
        ranks.correlation_id,
        'step' AS kind,
        step.name AS subject,
        step.occurrence,
        ranks.rank,
        ranks.run_id,
        any_value(step.host_wall_ns) AS duration_ns,
        max({busy: launched_busy_ns, comm: launched_communication_ns}) FILTER (launched_busy_ns IS NOT NULL) AS busiest,
        (busiest).busy AS busy_ns,
        (busiest).comm AS communication_ns
    FROM step_breakdown AS step
    JOIN _rank_runs AS ranks USING (run_id)
    GROUP BY ranks.correlation_id, step.span_id, step.name, step.occurrence, ranks.rank, ranks.run_id
),
observed AS (
    SELECT * EXCLUDE (busiest) FROM steps
    UNION ALL
    SELECT correlation_id, 'collective', subject, occurrence, rank, run_id, duration_ns, NULL, NULL
    FROM _rank_collectives
),
centred AS (
    SELECT
        *,
        count(*) OVER peers AS ranks,
        median(duration_ns) OVER peers AS median_duration_ns,
        median(busy_ns::BIGINT) OVER peers AS median_busy_ns,
        median(communication_ns::BIGINT) OVER peers AS median_communication_ns
    FROM observed
    WINDOW peers AS (PARTITION BY correlation_id, kind, subject, occurrence)
)
SELECT
    correlation_id,
    kind,
    subject,
    occurrence,
    rank,
    run_id,
    ranks,
    duration_ns,
    busy_ns,
    communication_ns,
    median_duration_ns,
    duration_ns - median_duration_ns AS duration_deviation_ns,
    busy_ns - median_busy_ns AS busy_deviation_ns,
    communication_ns - median_communication_ns AS communication_deviation_ns
FROM centred
WHERE ranks > 1;

COMMENT ON VIEW rank_stragglers IS
'How far each rank of a job is from the median over its ranks, step by step and collective by collective, by durations alone. A job is the runs of one correlation_id, each with a rank of its own. Grain: correlation_id, kind, subject, occurrence, rank; what only one rank has makes no row.';
COMMENT ON COLUMN rank_stragglers.correlation_id IS 'The job.';
COMMENT ON COLUMN rank_stragglers.kind IS 'step or collective.';
COMMENT ON COLUMN rank_stragglers.subject IS
'Name of the step, or of the collective (its kernel where the trace does not say) with its group.';
COMMENT ON COLUMN rank_stragglers.occurrence IS
'Number among those of this subject in the run, from 1; what has the same number is compared.';
COMMENT ON COLUMN rank_stragglers.rank IS 'The rank.';
COMMENT ON COLUMN rank_stragglers.run_id IS 'Its run.';
COMMENT ON COLUMN rank_stragglers.ranks IS 'Number of ranks that have it.';
COMMENT ON COLUMN rank_stragglers.duration_ns IS
'Host duration of the step, or device duration of the collective, in nanoseconds.';
COMMENT ON COLUMN rank_stragglers.busy_ns IS
'Busy nanoseconds of the device work launched in the step, on the busiest clock; NULL for a collective or without links.';
COMMENT ON COLUMN rank_stragglers.communication_ns IS
'Nanoseconds of it in which communication ran; NULL for a collective or without links.';
COMMENT ON COLUMN rank_stragglers.median_duration_ns IS 'Median of duration_ns over the ranks, in nanoseconds.';
COMMENT ON COLUMN rank_stragglers.duration_deviation_ns IS
'duration_ns minus its median, in nanoseconds: above 0 for a slow step, below 0 for the rank a collective waited for.';
COMMENT ON COLUMN rank_stragglers.busy_deviation_ns IS 'busy_ns minus its median, in nanoseconds; NULL where busy_ns is.';
COMMENT ON COLUMN rank_stragglers.communication_deviation_ns IS
'communication_ns minus its median, in nanoseconds; NULL where communication_ns is.';
