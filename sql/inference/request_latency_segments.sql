-- A request's time, by what it was doing: the roles it had in iterations, and the time in none. Iterations that overlap
-- form clusters, which are cut at their starts and ends; what is left is before, between and after them.
WITH requests AS (
    SELECT
        run_id, seq, request_id, attributes ->> '$.attempt_ref' AS attempt, clock_id,
        start_ns::HUGEINT AS start_ns, start_ns::HUGEINT + duration_ns AS end_ns
    FROM engine_events
    WHERE event_type = 'infer.request' AND request_id IS NOT NULL AND duration_ns IS NOT NULL
),
iterations AS (
    SELECT run_id, iteration_id, clock_id, min(start_ns)::HUGEINT AS start_ns, max(start_ns::HUGEINT + duration_ns) AS end_ns
    FROM engine_events
    WHERE event_type = 'infer.iteration' AND duration_ns IS NOT NULL
    GROUP BY ALL
),
members AS (
    SELECT DISTINCT
        run_id, request_id, iteration_id, attributes ->> '$.role' AS role, attributes ->> '$.attempt_ref' AS attempt
    FROM engine_events
    WHERE event_type = 'infer.membership'
),
taken AS (
    SELECT
        requests.*, members.role, members.iteration_id,
        -- greatest and least pass over NULL: an iteration without times on this clock has none here either.
        CASE WHEN iterations.start_ns IS NOT NULL THEN greatest(requests.start_ns, iterations.start_ns) END AS from_ns,
        CASE WHEN iterations.start_ns IS NOT NULL THEN least(requests.end_ns, iterations.end_ns) END AS to_ns
    FROM requests
    JOIN members ON members.run_id = requests.run_id AND members.request_id = requests.request_id
        AND (members.attempt IS NULL OR requests.attempt IS NULL OR members.attempt = requests.attempt)
    LEFT JOIN iterations ON iterations.run_id = members.run_id AND iterations.iteration_id = members.iteration_id
        AND iterations.clock_id = requests.clock_id
),
unplaced AS (
    SELECT run_id, seq, count(DISTINCT iteration_id) AS iterations FROM taken WHERE from_ns IS NULL GROUP BY ALL
),
marked AS (
    SELECT
        *,
        coalesce(from_ns >= max(to_ns) OVER (
            PARTITION BY run_id, seq ORDER BY from_ns, to_ns, iteration_id, role
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), true) AS opens
    FROM taken
    WHERE from_ns < to_ns
),
clustered AS (
    SELECT
        *, count(*) FILTER (opens) OVER (PARTITION BY run_id, seq ORDER BY from_ns, to_ns, iteration_id, role) AS cluster
    FROM marked
),
cuts AS (
    SELECT DISTINCT run_id, seq, cluster, unnest([from_ns, to_ns]) AS from_ns FROM clustered
),
pieces AS (
    SELECT *, lead(from_ns) OVER (PARTITION BY run_id, seq, cluster ORDER BY from_ns) AS to_ns FROM cuts
),
roles AS (
    SELECT
        piece.run_id, piece.seq, piece.from_ns, piece.to_ns,
        array_to_string(list(DISTINCT own.role ORDER BY own.role), '+') AS segment
    FROM pieces AS piece
    JOIN clustered AS own ON own.run_id = piece.run_id AND own.seq = piece.seq AND own.cluster = piece.cluster
        AND own.from_ns <= piece.from_ns AND own.to_ns >= piece.to_ns
    WHERE piece.to_ns IS NOT NULL
    GROUP BY ALL
),
reached AS (
    SELECT run_id, seq, min(from_ns) AS first_ns, max(to_ns) AS last_ns, sum(to_ns - from_ns) AS covered_ns
    FROM roles
    GROUP BY ALL
),
segments AS (
    SELECT run_id, seq, segment, sum(to_ns - from_ns) AS duration_ns FROM roles GROUP BY ALL
    UNION ALL
    SELECT run_id, seq, part.segment, part.duration_ns
    FROM (
        SELECT
            requests.run_id, requests.seq,
            unnest(CASE WHEN first_ns IS NULL
                THEN [{'segment': 'outside_iterations', 'duration_ns': requests.end_ns - requests.start_ns}]
                ELSE [
                    {'segment': 'before_first_iteration', 'duration_ns': first_ns - requests.start_ns},
                    {'segment': 'between_iterations', 'duration_ns': last_ns - first_ns - covered_ns},
                    {'segment': 'after_last_iteration', 'duration_ns': requests.end_ns - last_ns}
                ]
            END) AS part
        FROM requests
        LEFT JOIN reached USING (run_id, seq)
    )
)
SELECT
    run_id, seq, requests.request_id, requests.attempt, requests.clock_id,
    segments.segment, segments.duration_ns, coalesce(unplaced.iterations, 0) AS unplaced_iterations
FROM segments
JOIN requests USING (run_id, seq)
LEFT JOIN unplaced USING (run_id, seq);

COMMENT ON VIEW request_latency_segments IS
'The time of a request by what it was doing; the segments of a request add up to its duration exactly. Grain: run_id, seq, segment.';
COMMENT ON COLUMN request_latency_segments.run_id IS 'The run.';
COMMENT ON COLUMN request_latency_segments.seq IS 'seq of the request''s record.';
COMMENT ON COLUMN request_latency_segments.request_id IS 'The request, as producer/id.';
COMMENT ON COLUMN request_latency_segments.attempt IS 'Its attempt as recorded, JSON; NULL when it names none.';
COMMENT ON COLUMN request_latency_segments.clock_id IS 'Clock of the request; iterations count on the same clock alone.';
COMMENT ON COLUMN request_latency_segments.segment IS
'Roles it had, joined by + where iterations overlap; before_first_iteration, between_iterations and after_last_iteration; outside_iterations when it was in none with times.';
COMMENT ON COLUMN request_latency_segments.duration_ns IS 'Nanoseconds.';
COMMENT ON COLUMN request_latency_segments.unplaced_iterations IS
'Iterations it was in that have no times on its clock; their time is in the segments outside of iterations.';
