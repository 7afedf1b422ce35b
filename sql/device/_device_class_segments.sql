-- Two passes. The first cuts the work of each class into pieces that do not overlap: of each interval what reaches past
-- everything before it. The second walks over the ends of all pieces of a clock; the sum of the bits is then the set of
-- classes that run until the next end, because no class is ever counted twice.
--
--   compute        [====)     [==)      bit 1
--   communication     [=====)           bit 2
--   set            1  3   2  0 1        each segment is in exactly one set; 0 is idle
--
-- Pieces that touch give segments of length 0, which add nothing whatever their set. Work of length 0 has no piece and
-- widens no window.
WITH reached AS (
    SELECT
        run_id,
        device,
        clock_id,
        class,
        start_ns::HUGEINT AS start_ns,
        start_ns::HUGEINT + duration_ns AS end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id, class
            ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM device_work
    WHERE duration_ns > 0
),
ends AS (
    SELECT
        run_id,
        device,
        clock_id,
        unnest([
            {at_ns: greatest(start_ns, coalesce(reached_ns, start_ns)), bits: 1::HUGEINT << bit::INTEGER},
            {at_ns: end_ns, bits: -(1::HUGEINT << bit::INTEGER)}
        ], recursive := true)
    FROM reached
    JOIN _device_class_bits USING (class)
    WHERE reached_ns IS NULL OR end_ns > reached_ns
),
walked AS (
    SELECT
        run_id,
        device,
        clock_id,
        sum(bits) OVER (later ROWS UNBOUNDED PRECEDING) AS bits,
        lead(at_ns) OVER later - at_ns AS duration_ns
    FROM ends
    WINDOW later AS (PARTITION BY run_id, device, clock_id ORDER BY at_ns)
)
SELECT run_id, device, clock_id, bits, sum(duration_ns) AS duration_ns
FROM walked
WHERE duration_ns > 0
GROUP BY run_id, device, clock_id, bits;

COMMENT ON VIEW _device_class_segments IS
'How long each set of classes ran, between the first start and the last end of a device clock. Grain: run_id, device, clock_id, bits.';
COMMENT ON COLUMN _device_class_segments.run_id IS 'The run.';
COMMENT ON COLUMN _device_class_segments.device IS 'Device label.';
COMMENT ON COLUMN _device_class_segments.clock_id IS 'Clock of the intervals.';
COMMENT ON COLUMN _device_class_segments.bits IS 'The set, as the sum of its bits in _device_class_bits; 0 is idle.';
COMMENT ON COLUMN _device_class_segments.duration_ns IS 'Nanoseconds in which exactly this set ran.';
