SELECT
    p.campaign_id,
    any_value(p.entrypoint) AS entrypoint,
    count(*) AS planned,
    count(*) FILTER (s.state = 'published') AS published,
    count(*) FILTER (s.state = 'missing') AS missing,
    count(*) FILTER (s.state NOT IN ('published', 'missing')) AS failed
FROM campaign_planned AS p
JOIN campaign_status AS s ON s.campaign_id = p.campaign_id AND s.position = p.position
GROUP BY p.campaign_id;

COMMENT ON VIEW campaign_counts IS 'How far each campaign is (protocol 11.2). Grain: campaign_id.';
COMMENT ON COLUMN campaign_counts.campaign_id IS 'The campaign.';
COMMENT ON COLUMN campaign_counts.entrypoint IS 'Entrypoint every capture of the campaign must have.';
COMMENT ON COLUMN campaign_counts.planned IS 'Number of planned captures.';
COMMENT ON COLUMN campaign_counts.published IS 'Number of planned captures in state published.';
COMMENT ON COLUMN campaign_counts.missing IS 'Number of planned captures in state missing.';
COMMENT ON COLUMN campaign_counts.failed IS 'Number of planned captures in any other state.';
