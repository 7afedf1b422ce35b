-- The pieces of one stream do not overlap each other, so streams can be walked like the classes of
-- _device_class_segments: one bit a stream, and the sum of the bits between two ends is the set of busy streams. One
-- walk holds two blocks of 60 streams, and the walks of all pairs of blocks hold every pair of streams once.
--
--   stream 7   [=====)   [===)
--   stream 20     [=========)        both busy 3 and 2
WITH streams AS (
    SELECT
        run_id,
        device,
        clock_id,
        stream_id,
        row_number() OVER (PARTITION BY run_id, device, clock_id ORDER BY stream_id) - 1 AS place,
        place // 60 AS block,
        place % 60 AS bit
    FROM (SELECT DISTINCT run_id, device, clock_id, stream_id FROM device_intervals WHERE duration_ns > 0)
    QUALIFY count(*) OVER (PARTITION BY run_id, device, clock_id) > 1
),
walks AS (
    SELECT DISTINCT one.run_id, one.device, one.clock_id, one.block, other.block AS other_block
    FROM streams AS one
    JOIN streams AS other USING (run_id, device, clock_id)
    WHERE one.bit = 0 AND other.bit = 0 AND one.block <= other.block
),
-- The streams of a walk, each as its power of two. A block that is walked with itself is there once.
bits AS (
    SELECT
        streams.run_id, streams.device, streams.clock_id, walks.block, walks.other_block, streams.stream_id,
        streams.block <> walks.block AS shifted,
        (1::HUGEINT << (streams.bit + CASE WHEN shifted THEN 60 ELSE 0 END)::INTEGER) AS weight
    FROM streams
    JOIN walks
        ON walks.run_id = streams.run_id
        AND walks.device = streams.device
        AND walks.clock_id = streams.clock_id
        AND streams.block IN (walks.block, walks.other_block)
),
reached AS (
    SELECT
        run_id,
        device,
        clock_id,
        stream_id,
        start_ns::HUGEINT AS start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id, stream_id
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_intervals
    WHERE duration_ns > 0
),
ends AS (
    SELECT
        run_id, device, clock_id, block, other_block,
        unnest([
            {at_ns: greatest(start_ns, coalesce(reached_ns, start_ns)), weight: weight},
            {at_ns: end_ns, weight: -weight}
        ], recursive := true)
    FROM reached
    JOIN bits USING (run_id, device, clock_id, stream_id)
    WHERE reached_ns IS NULL OR end_ns > reached_ns
),
walked AS (
    SELECT
        run_id, device, clock_id, block, other_block,
        sum(weight) OVER (later ROWS UNBOUNDED PRECEDING) AS busy,
        lead(at_ns) OVER later - at_ns AS duration_ns
    FROM ends
    WINDOW later AS (PARTITION BY run_id, device, clock_id, block, other_block ORDER BY at_ns)
),
sets AS (
    SELECT run_id, device, clock_id, block, other_block, busy, sum(duration_ns) AS duration_ns
    FROM walked
    WHERE duration_ns > 0 AND bit_count(busy) > 1
    GROUP BY run_id, device, clock_id, block, other_block, busy
)
SELECT
    run_id, device, clock_id, one.stream_id, other.stream_id AS other_stream_id, sum(duration_ns) AS overlap_ns
FROM sets
JOIN bits AS one USING (run_id, device, clock_id, block, other_block)
JOIN bits AS other USING (run_id, device, clock_id, block, other_block)
WHERE one.stream_id < other.stream_id AND busy & one.weight <> 0 AND busy & other.weight <> 0
    AND (block = other_block OR one.shifted <> other.shifted)
GROUP BY run_id, device, clock_id, one.stream_id, other.stream_id;

COMMENT ON VIEW stream_overlaps IS
'Pairs of streams of a device clock that were busy at the same time. Grain: run_id, device, clock_id, stream_id, other_stream_id; a pair that never was has no row.';
COMMENT ON COLUMN stream_overlaps.run_id IS 'The run.';
COMMENT ON COLUMN stream_overlaps.device IS 'Device label.';
COMMENT ON COLUMN stream_overlaps.clock_id IS 'Clock of the intervals; two clocks cannot be compared.';
COMMENT ON COLUMN stream_overlaps.stream_id IS 'The stream of the pair that sorts first, as text.';
COMMENT ON COLUMN stream_overlaps.other_stream_id IS 'The other one.';
COMMENT ON COLUMN stream_overlaps.overlap_ns IS 'Nanoseconds in which both were busy, more than 0.';
