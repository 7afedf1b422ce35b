-- What an engine recorded with an iteration anchors (where no side is told, whatever is no GPU work): each of its ids,
-- in its scope, names an iteration. An activity belongs to the one iteration that all its ids lead to. Time, streams
-- and names are never asked (correlation capture, 1.3).
WITH keys AS (
    SELECT
        run_id,
        seq,
        coalesce(origin, if(domain = 'gpu', 'trace', 'engine')) AS origin,
        origin AS told,
        iteration_id,
        {'session': session_id, 'host': host, 'process': process_id, 'scope': scope} AS place,
        coalesce(device, '') AS device,
        unnest([
            {'kind': 'runtime', 'id': runtime_correlation_id}, {'kind': 'cuda', 'id': cuda_correlation_id}
        ]) AS key
    FROM activities
),
usable AS (
    SELECT * FROM keys WHERE key.id IS NOT NULL AND place.scope IS NOT NULL AND place.host IS NOT NULL
    AND place.process IS NOT NULL
),
anchors AS (
    SELECT run_id, place, device, key, list(DISTINCT iteration_id ORDER BY iteration_id) AS iterations
    FROM usable
    WHERE iteration_id IS NOT NULL AND origin = 'engine'
    GROUP BY run_id, place, device, key
),
led AS (
    SELECT
        open.run_id,
        open.seq,
        count(*) AS ids,
        count(anchors.key) AS anchored,
        coalesce(max(len(anchors.iterations)), 0) AS most,
        list_sort(list_distinct(flatten(coalesce(list(anchors.iterations), [])))) AS candidates
    FROM usable AS open
    LEFT JOIN anchors USING (run_id, place, device, key)
    WHERE open.iteration_id IS NULL AND open.told IS DISTINCT FROM 'engine'
    GROUP BY open.run_id, open.seq
),
elsewhere AS (
    SELECT DISTINCT open.run_id, open.seq
    FROM keys AS open
    JOIN keys AS launch ON launch.run_id = open.run_id AND launch.key = open.key
    WHERE open.iteration_id IS NULL AND open.key.id IS NOT NULL AND open.place.scope IS NOT NULL
    AND launch.iteration_id IS NOT NULL AND launch.origin = 'engine'
)
SELECT
    own.run_id,
    own.seq,
    own.activity_id,
    CASE
        WHEN own.iteration_id IS NOT NULL THEN own.iteration_id
        WHEN len(led.candidates) = 1 THEN led.candidates[1]
    END AS iteration_id,
    CASE
        WHEN own.iteration_id IS NOT NULL THEN 'recorded'
        WHEN len(led.candidates) = 1 THEN 'linked'
        ELSE 'unlinked'
    END AS status,
    CASE
        WHEN own.iteration_id IS NOT NULL OR len(led.candidates) = 1 THEN NULL
        WHEN own.unresolved_reason IS NOT NULL THEN own.unresolved_reason
        WHEN own.scope IS NULL OR (own.runtime_correlation_id IS NULL AND own.cuda_correlation_id IS NULL)
            THEN 'no_identity'
        WHEN own.origin = 'engine' THEN 'engine_names_none'
        WHEN led.most > 1 THEN 'ambiguous_ids'
        WHEN len(led.candidates) > 1 THEN 'ids_disagree'
        WHEN elsewhere.seq IS NOT NULL THEN 'scope_differs'
        ELSE 'no_anchor'
    END AS reason,
    CASE WHEN own.iteration_id IS NULL THEN coalesce(led.candidates, []) ELSE [own.iteration_id] END AS candidates
FROM activities AS own
LEFT JOIN led ON led.run_id = own.run_id AND led.seq = own.seq
LEFT JOIN elsewhere ON elsewhere.run_id = own.run_id AND elsewhere.seq = own.seq;

COMMENT ON VIEW activity_links IS
'Which iteration each activity belongs to, by the ids that it shares with launches of the engine; over the whole artifact, and never by time. Grain: run_id, seq.';
COMMENT ON COLUMN activity_links.run_id IS 'The run.';
COMMENT ON COLUMN activity_links.seq IS 'seq of the activity.';
COMMENT ON COLUMN activity_links.activity_id IS 'The activity.';
COMMENT ON COLUMN activity_links.iteration_id IS 'Its iteration; NULL when it stays unlinked.';
COMMENT ON COLUMN activity_links.status IS 'recorded (its producer linked it), linked (by ids) or unlinked.';
COMMENT ON COLUMN activity_links.reason IS
'Why it is unlinked: what its producer says, no_identity (no scope or no id), engine_names_none (the engine recorded it itself, without an iteration), ambiguous_ids (one id is claimed by several iterations), ids_disagree (its two ids lead to different ones), scope_differs (the id exists in another session, process, device or scope) or no_anchor; NULL when it is linked.';
COMMENT ON COLUMN activity_links.candidates IS 'Iterations that its ids lead to, sorted.';
