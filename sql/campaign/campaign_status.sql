-- The first state that matches wins (protocol 11.2). A planned bundle without a check does not exist. An interrupted
-- capture has no outcome; it never counts as published, nor does a run that does not state what was planned.
SELECT
    p.campaign_id,
    p.capture_step,
    p.bundle,
    CASE
        WHEN c.bundle IS NULL THEN 'missing'
        WHEN c.message IS NOT NULL OR r.run_id IS NULL THEN 'verification_failed'
        WHEN r.entrypoint IS DISTINCT FROM p.entrypoint OR r.capture_step IS DISTINCT FROM p.capture_step
            OR r.run_id <> p.run_id THEN 'identity_mismatch'
        WHEN r.outcome IS DISTINCT FROM 'complete' THEN 'failed_run'
        ELSE 'published'
    END AS state,
    c.run_id,
    c.manifest_sha256,
    CASE
        WHEN c.bundle IS NULL THEN NULL
        WHEN c.message IS NOT NULL THEN c.message
        WHEN r.run_id IS NULL THEN 'no run of the bundle could be read'
        WHEN r.entrypoint IS DISTINCT FROM p.entrypoint THEN concat(
            'the run has entrypoint ', coalesce(r.entrypoint, '(not stated)'), '; the manifest has ', p.entrypoint
        )
        WHEN r.capture_step IS DISTINCT FROM p.capture_step THEN concat(
            'the run has capture step ', coalesce(r.capture_step::VARCHAR, '(not stated)'),
            '; planned was ', p.capture_step
        )
        WHEN r.run_id <> p.run_id THEN concat('the bundle holds run ', r.run_id, '; planned was ', p.run_id)
        WHEN r.outcome = 'failed' THEN coalesce(r.failure_reason, 'failed without a reason')
        WHEN r.outcome IS NULL THEN 'interrupted: no terminal record'
    END AS message,
    p.position,
    p.run_id AS planned_run_id
FROM campaign_planned AS p
LEFT JOIN bundle_checks AS c ON c.campaign_id = p.campaign_id AND c.bundle = p.bundle
LEFT JOIN runs AS r ON r.run_id = c.run_id;

COMMENT ON VIEW campaign_status IS
'State of every planned capture (protocol 11.2); structural health is not consulted. Grain: campaign_id, position.';
COMMENT ON COLUMN campaign_status.campaign_id IS 'The campaign.';
COMMENT ON COLUMN campaign_status.capture_step IS 'Planned capture step.';
COMMENT ON COLUMN campaign_status.bundle IS 'Bundle path as in campaign_planned.';
COMMENT ON COLUMN campaign_status.state IS
'missing, verification_failed, identity_mismatch, failed_run (also an interrupted run) or published.';
COMMENT ON COLUMN campaign_status.run_id IS 'Run id of the bundle; NULL when it is missing or could not be read.';
COMMENT ON COLUMN campaign_status.manifest_sha256 IS
'Digest of the bundle''s manifest; NULL when it is missing or verification failed.';
COMMENT ON COLUMN campaign_status.message IS
'Why the state is not published: what verification found, what differs, or the reason of the failed run; NULL for missing and published.';
COMMENT ON COLUMN campaign_status.position IS 'Order in the manifest, from 0.';
COMMENT ON COLUMN campaign_status.planned_run_id IS 'Planned run id; NULL when the manifest plans a bundle path only.';
