-- An operation is no span; it lies in the region when the span that it ran in does.
SELECT own.run_id, own.name AS label, sum(own.host_self_time_ns) AS host_self_time_ns
FROM host_self_time AS own
SEMI JOIN _measured_subtree AS region
    ON region.run_id = own.run_id
    AND region.span_id = CASE WHEN own.node_kind = 'op' THEN coalesce(own.parent_id, own.node_id) ELSE own.node_id END
GROUP BY own.run_id, own.name;

COMMENT ON VIEW host_label_time IS
'Host self time of all spans and operations of one name in the measured region, added up (protocol 4.3, 4.4). Grain: run_id, label; runs without exactly one closed measured span have no row.';
COMMENT ON COLUMN host_label_time.run_id IS 'The run.';
COMMENT ON COLUMN host_label_time.label IS 'Semantic label of the spans, or name of the operations.';
COMMENT ON COLUMN host_label_time.host_self_time_ns IS
'Nanoseconds on the host, without what runs inside of them; NULL when none of them is known.';
