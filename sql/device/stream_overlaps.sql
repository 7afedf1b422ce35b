-- The pieces of one stream do not overlap each other, so two pieces of two streams that meet add their common part and
-- nothing is counted twice. Only the ends are compared in the join: the clock is packed above them, because a range
-- join that also asks for equality compares all pieces of a clock with each other.
--
--   stream 7   [=====)   [===)
--   stream 20     [=========)        overlap 3 and 2
WITH clocks AS (
    SELECT run_id, device, clock_id, row_number() OVER () AS clock
    FROM device_intervals
    GROUP BY run_id, device, clock_id
    HAVING count(DISTINCT stream_id) > 1
),
reached AS (
    SELECT
        clock,
        stream_id,
        start_ns::HUGEINT AS start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY clock, stream_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_intervals
    JOIN clocks USING (run_id, device, clock_id)
    WHERE duration_ns > 0
),
pieces AS (
    SELECT
        clock,
        stream_id,
        (clock::HUGEINT << 66) + greatest(start_ns, coalesce(reached_ns, start_ns)) AS start_ns,
        (clock::HUGEINT << 66) + end_ns AS end_ns
    FROM reached
    WHERE reached_ns IS NULL OR end_ns > reached_ns
),
met AS (
    SELECT
        one.clock,
        one.stream_id,
        other.stream_id AS other_stream_id,
        sum(least(one.end_ns, other.end_ns) - greatest(one.start_ns, other.start_ns)) AS overlap_ns
    FROM pieces AS one
    JOIN pieces AS other ON one.start_ns < other.end_ns AND one.end_ns > other.start_ns
    WHERE one.stream_id < other.stream_id
    GROUP BY one.clock, one.stream_id, other.stream_id
)
SELECT run_id, device, clock_id, stream_id, other_stream_id, overlap_ns
FROM met
JOIN clocks USING (clock);

COMMENT ON VIEW stream_overlaps IS
'Pairs of streams of a device clock that were busy at the same time. Grain: run_id, device, clock_id, stream_id, other_stream_id; a pair that never was has no row.';
COMMENT ON COLUMN stream_overlaps.run_id IS 'The run.';
COMMENT ON COLUMN stream_overlaps.device IS 'Device label.';
COMMENT ON COLUMN stream_overlaps.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN stream_overlaps.stream_id IS 'The stream of the pair that sorts first, as text.';
COMMENT ON COLUMN stream_overlaps.other_stream_id IS 'The other one.';
COMMENT ON COLUMN stream_overlaps.overlap_ns IS 'Nanoseconds in which both were busy, more than 0.';
