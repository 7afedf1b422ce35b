-- Everything is clipped to the window of the measured span M before anything is subtracted (protocol 4.4). A concurrent
-- span keeps its real parent, so it is a child for its parent's self time and a row of its own:
--
--   window        |==============|
--   concurrent  [-----)              overlap 4, of a full duration of 6
--   its child     [--------)         clipped likewise; not clipped to its parent
WITH windows AS (
    SELECT
        region.run_id,
        region.start_ns AS window_start_ns,
        region.start_ns + total.host_total_time_ns AS window_end_ns
    FROM _measured_region AS region
    JOIN _span_host_total AS total USING (run_id, span_id)
),
clipped AS (
    SELECT
        nodes.run_id,
        nodes.node_id,
        nodes.parent_id,
        nodes.is_span,
        nodes.node_kind,
        greatest(nodes.start_ns, windows.window_start_ns)::HUGEINT AS start_ns,
        least(nodes.end_ns, windows.window_end_ns) AS end_ns
    FROM _host_nodes AS nodes
    JOIN windows USING (run_id)
    -- least() passes over a NULL; a node without a known end must not fill the window.
    WHERE nodes.end_ns IS NOT NULL
        AND greatest(nodes.start_ns, windows.window_start_ns) < least(nodes.end_ns, windows.window_end_ns)
),
reached AS (
    SELECT
        run_id,
        parent_id,
        start_ns,
        end_ns,
        max(end_ns) OVER (
            PARTITION BY run_id, parent_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reached_ns
    FROM clipped
    WHERE parent_id IS NOT NULL
),
covered AS (
    SELECT run_id, parent_id, sum(_uncovered_ns(start_ns, end_ns, reached_ns)) AS covered_ns
    FROM reached
    GROUP BY run_id, parent_id
),
costs AS (
    SELECT
        clipped.run_id,
        clipped.node_id AS id,
        scopes.scope,
        clipped.end_ns - clipped.start_ns AS measured_overlap_duration_ns,
        greatest(measured_overlap_duration_ns - coalesce(covered.covered_ns, 0), 0) AS measured_overlap_self_time_ns
    FROM clipped
    JOIN _measured_scope AS scopes ON scopes.run_id = clipped.run_id AND scopes.span_id = clipped.node_id
    LEFT JOIN covered ON covered.run_id = clipped.run_id AND covered.parent_id = clipped.node_id
    WHERE clipped.is_span AND clipped.node_kind <> 'op' AND scopes.scope <> 'ancestor'
)
SELECT
    costs.run_id,
    costs.id,
    nodes.name,
    costs.scope,
    nodes.host_self_time_ns,
    costs.measured_overlap_self_time_ns,
    nodes.host_total_time_ns AS full_duration_ns,
    costs.measured_overlap_duration_ns,
    row_number() OVER (
        PARTITION BY costs.run_id
        ORDER BY costs.measured_overlap_self_time_ns DESC, nodes.host_self_time_ns DESC, costs.id
    ) AS rank
FROM costs
JOIN host_self_time AS nodes ON nodes.run_id = costs.run_id AND nodes.node_id = costs.id
WHERE nodes.node_kind <> 'op';

COMMENT ON VIEW slowest_host IS
'Host spans ranked by self time inside the measured region (protocol 4.4); every row, callers cut. Concurrent rows must not be added to wall time. Grain: run_id, id; runs without exactly one closed measured span have no row.';
COMMENT ON COLUMN slowest_host.run_id IS 'The run.';
COMMENT ON COLUMN slowest_host.id IS
'The span; ancestors of the measured span and spans of kind op that have a parent take no part.';
COMMENT ON COLUMN slowest_host.name IS 'Semantic label of the span.';
COMMENT ON COLUMN slowest_host.scope IS
'measured_subtree, or concurrent_overlap for a span that is neither below nor above the measured span.';
COMMENT ON COLUMN slowest_host.host_self_time_ns IS 'Self time of the whole span, in nanoseconds.';
COMMENT ON COLUMN slowest_host.measured_overlap_self_time_ns IS
'Overlap with the region minus the union of the direct children clipped to it, in nanoseconds, at least 0.';
COMMENT ON COLUMN slowest_host.full_duration_ns IS 'Total host time of the whole span, in nanoseconds.';
COMMENT ON COLUMN slowest_host.measured_overlap_duration_ns IS
'Overlap with the measured region, in nanoseconds, more than 0.';
COMMENT ON COLUMN slowest_host.rank IS 'Place in its run, from 1: by overlap self time, then self time, then id.';
