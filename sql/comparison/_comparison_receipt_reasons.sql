-- Items 1 to 4 of protocol 10.2. An unverified comparison has no receipts to judge: it raises unverified_inputs alone.
SELECT comparison_id, 1 AS item, NULL AS cohort, -1 AS position, 0 AS code_order, NULL AS run_id,
    'unverified_inputs' AS code,
    'some runs were not read from verified bundles' AS message
FROM _comparison_cohorts
WHERE unverified AND cohort_order = 0
UNION ALL
SELECT comparison_id, 2, cohort, -1, 0, NULL,
    'receipt_count_mismatch',
    format('the {} has {} runs and {} verification receipts', cohort, runs, receipts)
FROM _comparison_cohorts
WHERE NOT unverified AND receipts <> runs
UNION ALL
SELECT r.comparison_id, 2, r.cohort, r.position, c.code_order, r.run_id, c.code, c.message
FROM _comparison_runs AS r
JOIN _comparison_cohorts AS s ON s.comparison_id = r.comparison_id AND s.cohort = r.cohort,
LATERAL (
    VALUES
    (
        1, 'receipt_run_id_mismatch', r.receipt_run_id IS DISTINCT FROM r.run_id,
        concat('the receipt of run ', r.run_id, ' names ', coalesce(r.receipt_run_id, 'no run'))
    ),
    (
        2, 'receipt_digest_invalid', NOT coalesce(regexp_full_match(r.manifest_sha256, '[0-9a-fA-F]{64}'), false),
        concat('the manifest digest of run ', r.run_id, ' is not 64 hex digits')
    )
) AS c (code_order, code, applies, message)
WHERE c.applies AND NOT s.unverified AND s.receipts = s.runs;

COMMENT ON VIEW _comparison_receipt_reasons IS
'Reasons that concern verification (protocol 10.2, items 1 to 4). Grain: comparison_id, cohort, position, code.';
COMMENT ON COLUMN _comparison_receipt_reasons.comparison_id IS 'The comparison.';
COMMENT ON COLUMN _comparison_receipt_reasons.item IS 'Place among the groups of reasons.';
COMMENT ON COLUMN _comparison_receipt_reasons.cohort IS 'The cohort meant; NULL for the whole comparison.';
COMMENT ON COLUMN _comparison_receipt_reasons.position IS
'Input order of the run meant; -1 when no single run is meant.';
COMMENT ON COLUMN _comparison_receipt_reasons.code_order IS 'Order of the codes of one run.';
COMMENT ON COLUMN _comparison_receipt_reasons.run_id IS 'The run meant; NULL when no single run is meant.';
COMMENT ON COLUMN _comparison_receipt_reasons.code IS 'Stable code of the reason.';
COMMENT ON COLUMN _comparison_receipt_reasons.message IS 'The reason in words.';
