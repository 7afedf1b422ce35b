-- Every reason that applies, in the order in which protocol 10.2 collects them.
WITH collected AS (
    SELECT comparison_id, item, cohort, position, code_order, run_id, code, message FROM _comparison_receipt_reasons
    UNION ALL
    SELECT comparison_id, item, cohort, position, code_order, run_id, code, message FROM _comparison_run_reasons
    UNION ALL
    SELECT comparison_id, item, NULL, -1, 0, NULL, code, message FROM _comparison_set_reasons
    UNION ALL
    SELECT comparison_id, 10, cohort, -1, 0, NULL, code, CASE code
        WHEN 'implementation_id_missing'
            THEN format('a run of the {} has no implementation id, or it has no run', cohort)
        WHEN 'implementation_id_empty' THEN format('an implementation id of the {} is blank', cohort)
        ELSE format('the runs of the {} name more than one implementation', cohort)
    END
    FROM _comparison_implementations
    WHERE code IS NOT NULL
    UNION ALL
    SELECT comparison_id, 11, cohort, -1, 0, run_id, code, CASE code
        WHEN 'pairing_incomplete' THEN concat('run ', run_id, ' of the ', cohort, ' has no pair id or no measured span')
        WHEN 'pair_ids_duplicated' THEN concat('run ', run_id, ' repeats a pair id of the ', cohort)
        ELSE 'baseline and candidate name different pair ids'
    END
    FROM _comparison_pairing
    WHERE code IS NOT NULL
)
SELECT
    comparison_id,
    row_number() OVER (
        PARTITION BY comparison_id ORDER BY item, cohort NULLS FIRST, position, code_order
    ) AS reason_order,
    code,
    cohort,
    nullif(position, -1) AS position,
    run_id,
    message
FROM collected;

COMMENT ON VIEW comparison_reasons IS
'Why a comparison is not eligible (protocol 10.2); a comparison without rows is comparable. Grain: comparison_id, reason_order.';
COMMENT ON COLUMN comparison_reasons.comparison_id IS 'The comparison.';
COMMENT ON COLUMN comparison_reasons.reason_order IS 'Order in which the reasons are collected, from 1.';
COMMENT ON COLUMN comparison_reasons.code IS 'Stable code of the reason.';
COMMENT ON COLUMN comparison_reasons.cohort IS 'baseline or candidate; NULL when the whole comparison is meant.';
COMMENT ON COLUMN comparison_reasons.position IS
'Input order of the run meant in its cohort, from 0; NULL when the code is raised once for all.';
COMMENT ON COLUMN comparison_reasons.run_id IS 'The run meant; NULL when no single run is meant.';
COMMENT ON COLUMN comparison_reasons.message IS 'The reason in words; no stable text.';
