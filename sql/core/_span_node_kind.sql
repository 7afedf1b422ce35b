-- A span without a parent is a root whatever its own kind says (protocol 4.3). A parent that was never recorded is
-- still a parent.
CREATE OR REPLACE MACRO _span_node_kind(parent_id, span_kind) AS
CASE WHEN parent_id IS NULL THEN 'root' ELSE span_kind END;

COMMENT ON MACRO _span_node_kind IS 'Node kind of a span: root, function, module or op.';
