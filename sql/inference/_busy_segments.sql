-- A device clock is cut at every begin and end. Between two cuts nothing begins or ends, so a segment has one set of
-- owners, and the segments of a clock add up to its busy time exactly.
-- The work of one owner is merged first, and each merged interval is then a range of numbered cuts: it meets the segments
-- that it covers and no other, however long work overlaps without a break.
WITH reached AS (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY run_id, device, clock_id, clock_kind, iteration_id, reason ORDER BY start_ns, end_ns, seq
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM _busy_intervals
    WHERE end_ns > start_ns
),
numbered AS (
    SELECT
        * EXCLUDE (reached_ns),
        count(*) FILTER (reached_ns IS NULL OR start_ns > reached_ns) OVER (
            PARTITION BY run_id, device, clock_id, clock_kind, iteration_id, reason ORDER BY start_ns, end_ns, seq
            ROWS UNBOUNDED PRECEDING
        ) AS island
    FROM reached
),
owned AS (
    SELECT
        run_id, device, clock_id, clock_kind, iteration_id, reason, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM numbered
    GROUP BY run_id, device, clock_id, clock_kind, iteration_id, reason, island
),
times AS (
    SELECT run_id, device, clock_id, clock_kind, start_ns AS at_ns FROM owned
    UNION
    SELECT run_id, device, clock_id, clock_kind, end_ns FROM owned
),
cuts AS (
    SELECT
        *,
        row_number() OVER clock AS cut,
        lead(at_ns) OVER clock - at_ns AS duration_ns
    FROM times
    WINDOW clock AS (PARTITION BY run_id, device, clock_id, clock_kind ORDER BY at_ns)
),
covered AS (
    SELECT
        o.run_id, o.device, o.clock_id, o.clock_kind, o.iteration_id, o.reason,
        unnest(range(first.cut, last.cut)) AS cut
    FROM owned AS o
    JOIN cuts AS first
        ON first.run_id = o.run_id AND first.device = o.device AND first.clock_id = o.clock_id
        AND first.clock_kind = o.clock_kind AND first.at_ns = o.start_ns
    JOIN cuts AS last
        ON last.run_id = o.run_id AND last.device = o.device AND last.clock_id = o.clock_id
        AND last.clock_kind = o.clock_kind AND last.at_ns = o.end_ns
)
SELECT
    c.run_id,
    c.device,
    c.clock_id,
    c.clock_kind,
    cuts.at_ns AS start_ns,
    cuts.duration_ns,
    list(DISTINCT c.iteration_id ORDER BY c.iteration_id) FILTER (c.iteration_id IS NOT NULL) AS iterations,
    list(DISTINCT c.reason ORDER BY c.reason) FILTER (c.iteration_id IS NULL) AS reasons
FROM covered AS c
JOIN cuts USING (run_id, device, clock_id, clock_kind, cut)
GROUP BY ALL;

COMMENT ON VIEW _busy_segments IS
'The busy time of a device clock, cut so that each segment has one set of owners. Grain: run_id, device, clock_id, clock_kind, start_ns.';
COMMENT ON COLUMN _busy_segments.run_id IS 'The run.';
COMMENT ON COLUMN _busy_segments.device IS 'Device: its UUID in what an engine recorded, its label in a trace.';
COMMENT ON COLUMN _busy_segments.clock_id IS 'Clock of the times.';
COMMENT ON COLUMN _busy_segments.clock_kind IS 'monotonic or device.';
COMMENT ON COLUMN _busy_segments.start_ns IS 'Start, in nanoseconds.';
COMMENT ON COLUMN _busy_segments.duration_ns IS 'Duration in nanoseconds.';
COMMENT ON COLUMN _busy_segments.iterations IS 'Iterations that own it, sorted; NULL: none does.';
COMMENT ON COLUMN _busy_segments.reasons IS 'Reasons of activities in it that no iteration owns; NULL: none.';
