-- Children are taken whole, also where they reach outside their parent (protocol 4.3); the floor at 0 is for those.
--
--   parent    |==========|         self = 11 - (5 + 4), though one of the 4 lies outside
--   children   [---)  [---)
WITH reached AS (
    SELECT
        run_id,
        parent_id,
        start_ns,
        end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, parent_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM _host_nodes
    WHERE parent_id IS NOT NULL
),
covered AS (
    SELECT run_id, parent_id, sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS covered_ns
    FROM reached
    GROUP BY run_id, parent_id
)
SELECT
    nodes.run_id,
    nodes.node_id,
    nodes.parent_id,
    nodes.node_kind,
    nodes.name,
    nodes.seq,
    nodes.start_ns,
    nodes.host_total_time_ns,
    -- greatest() passes over a NULL; a time that is not known must not come out as 0.
    CASE WHEN nodes.host_total_time_ns IS NOT NULL
        THEN greatest(nodes.host_total_time_ns - coalesce(covered.covered_ns, 0), 0)
    END AS host_self_time_ns
FROM _host_nodes AS nodes
LEFT JOIN covered ON covered.run_id = nodes.run_id AND covered.parent_id = nodes.node_id AND nodes.is_span;

COMMENT ON VIEW host_self_time IS
'Host time of spans and operations with and without their direct children (protocol 4.3). On an asynchronous device this is launch time, not device time. Grain: run_id, node_id.';
COMMENT ON COLUMN host_self_time.run_id IS 'The run.';
COMMENT ON COLUMN host_self_time.node_id IS
'Span id, or span id (nothing outside any span), /op/ and the number of the operation in its span.';
COMMENT ON COLUMN host_self_time.parent_id IS 'Enclosing span; NULL for a root, and for an operation outside any span.';
COMMENT ON COLUMN host_self_time.node_kind IS 'root, function, module or op (an operation, or a span of kind op).';
COMMENT ON COLUMN host_self_time.name IS 'Semantic label of the span, or name of the operation.';
COMMENT ON COLUMN host_self_time.seq IS 'Position of the record in its source.';
COMMENT ON COLUMN host_self_time.start_ns IS 'Start on the host clock, in nanoseconds.';
COMMENT ON COLUMN host_self_time.host_total_time_ns IS
'Duration in nanoseconds; of a span of duration 0 or without an end, the sum over its operations and children; NULL when not known (foreign traces only).';
COMMENT ON COLUMN host_self_time.host_self_time_ns IS
'Total minus the union of the direct children, in nanoseconds, at least 0; NULL without a total.';
