SELECT run_id, state AS gap, label, occurrences
FROM semantic_label_ledger
WHERE state IN ('missing_expected', 'unexpected_observed', 'unexpected_cpu_only')
UNION ALL
SELECT run_id, 'duplicate_label', label, occurrences
FROM semantic_label_ledger
WHERE occurrences > 1
UNION ALL
SELECT run_id, 'matched_without_attribution', label, occurrences
FROM semantic_label_ledger
WHERE state = 'matched' AND attributed = 0
UNION ALL
SELECT run_id, 'attributed_not_expected', label, occurrences
FROM semantic_label_ledger
WHERE NOT expected AND attributed > 0;

COMMENT ON VIEW attribution_gaps IS
'What stands between the labels of a contract and device time for them (protocol 12.6). Grain: run_id, gap, label.';
COMMENT ON COLUMN attribution_gaps.run_id IS 'The run.';
COMMENT ON COLUMN attribution_gaps.gap IS
'missing_expected, unexpected_observed, unexpected_cpu_only, duplicate_label, matched_without_attribution or attributed_not_expected.';
COMMENT ON COLUMN attribution_gaps.label IS 'The label.';
COMMENT ON COLUMN attribution_gaps.occurrences IS 'Projected ranges of that name.';
