-- What an iteration has alone is split over its members; what several iterations share is in iteration_overlap and is
-- given to no request. Shares are rounded down, and what is left over is the row without a request.
WITH members AS (
    SELECT
        run_id,
        iteration_id,
        request_id,
        sum(coalesce(
            CAST(json_extract(attributes, '$.input_tokens') AS BIGINT), 0
        ) + coalesce(CAST(json_extract(attributes, '$.output_tokens') AS BIGINT), 0))::BIGINT AS tokens
    FROM engine_events
    WHERE event_type = 'infer.membership' AND request_id IS NOT NULL AND iteration_id IS NOT NULL
    GROUP BY run_id, iteration_id, request_id
),
totals AS (
    SELECT *, count(*) OVER one AS requests, sum(tokens) OVER one AS all_tokens
    FROM members
    WINDOW one AS (PARTITION BY run_id, iteration_id)
),
shares AS (
    SELECT
        time.run_id, time.iteration_id, time.device, time.clock_id, time.clock_kind, time.exclusive_ns,
        totals.request_id,
        unnest([
            {'rule': 'equal', 'share': time.exclusive_ns // totals.requests},
            {'rule': 'by_tokens', 'share': CASE WHEN totals.all_tokens > 0
                THEN time.exclusive_ns * totals.tokens // totals.all_tokens END},
            {'rule': 'exclusive_only', 'share': CASE WHEN totals.requests = 1 THEN time.exclusive_ns END}
        ]) AS split
    FROM iteration_gpu_time AS time
    LEFT JOIN totals USING (run_id, iteration_id)
    WHERE time.device IS NOT NULL
),
given AS (
    SELECT * EXCLUDE (split), split.rule AS rule, split.share AS gpu_ns FROM shares
)
SELECT run_id, iteration_id, request_id, device, clock_id, clock_kind, rule, gpu_ns, true AS estimated
FROM given
WHERE gpu_ns IS NOT NULL AND request_id IS NOT NULL
UNION ALL
SELECT
    run_id, iteration_id, NULL, device, clock_id, clock_kind, rule,
    any_value(exclusive_ns) - coalesce(sum(gpu_ns) FILTER (request_id IS NOT NULL), 0),
    false
FROM given
GROUP BY run_id, iteration_id, device, clock_id, clock_kind, rule;

COMMENT ON VIEW request_gpu_time IS
'A share of GPU time for each request of an iteration, by a rule that is named; with the row without a request the shares of a rule add up to what the iteration had alone, exactly. Grain: run_id, iteration_id, request_id, device, clock_id, clock_kind, rule.';
COMMENT ON COLUMN request_gpu_time.run_id IS 'The run.';
COMMENT ON COLUMN request_gpu_time.iteration_id IS 'The iteration.';
COMMENT ON COLUMN request_gpu_time.request_id IS 'The request; NULL: what the rule gives to none.';
COMMENT ON COLUMN request_gpu_time.device IS 'Device: its UUID in what an engine recorded, its label in a trace.';
COMMENT ON COLUMN request_gpu_time.clock_id IS 'Clock of the times.';
COMMENT ON COLUMN request_gpu_time.clock_kind IS 'monotonic or device.';
COMMENT ON COLUMN request_gpu_time.rule IS
'equal (the same for each member), by_tokens (in proportion to its tokens in the iteration) or exclusive_only (all to the only member, else none).';
COMMENT ON COLUMN request_gpu_time.gpu_ns IS 'Nanoseconds.';
COMMENT ON COLUMN request_gpu_time.estimated IS
'True for a share: no request was measured. False for the remainder.';
