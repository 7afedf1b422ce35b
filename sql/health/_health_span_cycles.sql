-- A parent chain can only return to an id through a parent that was recorded at or after its child. Runs without such
-- a pair (every run that a recorder wrote) are left out before anything is walked. In the others each round doubles the
-- steps walked, so a chain of n spans ends after log2(n) rounds; a chain still going after more steps than the run has
-- spans has come back to an id. Chains that end drop out of the join by themselves.
WITH RECURSIVE ids AS (
    FROM _health_span_index
),
suspects AS (
    SELECT DISTINCT child.run_id
    FROM ids AS child
    JOIN ids AS parent ON parent.run_id = child.run_id AND parent.id = child.parent_id
    WHERE parent.seq >= child.seq
),
links AS (
    SELECT run_id, id, parent_id, count(*) OVER (PARTITION BY run_id) AS span_count
    FROM ids
    SEMI JOIN suspects USING (run_id)
),
walk AS (
    SELECT run_id, id, parent_id AS ancestor_id, 1::BIGINT AS steps, span_count FROM links
    UNION ALL
    SELECT near.run_id, near.id, far.ancestor_id, 2 * near.steps, near.span_count
    FROM walk AS near
    JOIN walk AS far ON far.run_id = near.run_id AND far.id = near.ancestor_id
    WHERE near.steps <= near.span_count
)
SELECT run_id, id
FROM walk
WHERE steps > span_count AND ancestor_id IS NOT NULL;

COMMENT ON VIEW _health_span_cycles IS
'A span whose parent chain revisits an id (protocol 3, span_cycle). Grain: run_id, id.';
COMMENT ON COLUMN _health_span_cycles.run_id IS 'The run.';
COMMENT ON COLUMN _health_span_cycles.id IS 'The span.';
