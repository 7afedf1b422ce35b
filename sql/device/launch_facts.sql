WITH launched AS (
    SELECT run_id, correlation_id, count(*) AS launches FROM launches GROUP BY run_id, correlation_id
),
worked AS (
    SELECT run_id, correlation_id, count(*) AS intervals FROM device_intervals GROUP BY run_id, correlation_id
),
met AS (
    SELECT
        run_id,
        correlation_id IS NULL AS without_id,
        coalesce(launches, 0) AS launches,
        coalesce(intervals, 0) AS intervals
    FROM launched
    FULL JOIN worked USING (run_id, correlation_id)
)
SELECT
    run_id,
    sum(launches)::BIGINT AS launches,
    coalesce(sum(launches) FILTER (without_id), 0)::BIGINT AS launches_without_id,
    coalesce(sum(launches) FILTER (NOT without_id AND intervals = 0), 0)::BIGINT AS launches_without_work,
    sum(intervals)::BIGINT AS device_intervals,
    coalesce(sum(intervals) FILTER (without_id), 0)::BIGINT AS work_without_id,
    coalesce(sum(intervals) FILTER (NOT without_id AND launches = 0), 0)::BIGINT AS work_without_launch,
    count(*) FILTER (NOT without_id AND launches > 1) AS ids_of_several_launches,
    count(*) FILTER (NOT without_id AND intervals > 1) AS ids_of_several_intervals
FROM met
GROUP BY run_id;

COMMENT ON VIEW launch_facts IS
'How far launches and device work of a run meet by correlation id. Grain: run_id; a run with neither has no row.';
COMMENT ON COLUMN launch_facts.run_id IS 'The run.';
COMMENT ON COLUMN launch_facts.launches IS 'Number of launches: host calls that may start device work.';
COMMENT ON COLUMN launch_facts.launches_without_id IS 'Number of launches without a correlation id.';
COMMENT ON COLUMN launch_facts.launches_without_work IS
'Number of launches whose correlation id no device interval has; calls that start no work are among them.';
COMMENT ON COLUMN launch_facts.device_intervals IS 'Number of device intervals.';
COMMENT ON COLUMN launch_facts.work_without_id IS 'Number of device intervals without a correlation id.';
COMMENT ON COLUMN launch_facts.work_without_launch IS
'Number of device intervals whose correlation id no launch has.';
COMMENT ON COLUMN launch_facts.ids_of_several_launches IS 'Number of correlation ids that several launches have.';
COMMENT ON COLUMN launch_facts.ids_of_several_intervals IS
'Number of correlation ids that several device intervals have, as work of one graph launch does.';
