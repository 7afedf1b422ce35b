-- Item 5 of protocol 10.2. An unknown run has no health and no span, so it fails here and never passes by absence; nor
-- does a foreign run that does not say where it ran or whether its region was synchronised.
SELECT r.comparison_id, 5 AS item, r.cohort, r.position, c.code_order, r.run_id, c.code, c.message
FROM _comparison_runs AS r
LEFT JOIN run_health AS h ON h.run_id = r.run_id,
LATERAL (
    VALUES
    (
        1, 'incomplete_capture', NOT coalesce(h.structurally_valid AND h.capture_complete, false),
        concat('run ', r.run_id, ' is ', CASE
            WHEN h.run_id IS NULL THEN 'not known'
            WHEN h.structurally_valid THEN 'not a complete capture'
            ELSE 'not structurally valid'
        END)
    ),
    (
        2, 'not_production_equivalent',
        r.semantics.capture_contract.measurement_scope IS DISTINCT FROM 'production_equivalent',
        concat(
            'run ', r.run_id, ' has measurement scope ',
            coalesce(r.semantics.capture_contract.measurement_scope, 'unknown')
        )
    ),
    (
        3, 'unsynchronized_device_region',
        h.run_id IS NOT NULL AND NOT coalesce(
            starts_with(r.semantics.device, 'cpu') OR r.semantics.measured_region_device_synchronized, false
        ),
        CASE WHEN r.semantics.device IS NULL OR r.semantics.measured_region_device_synchronized IS NULL
            THEN concat('run ', r.run_id, ' does not state both its device and a device synchronisation of its region')
            ELSE concat('run ', r.run_id, ' on ', r.semantics.device, ' has no device synchronisation around its region')
        END
    ),
    (
        4, 'measured_region_count_invalid', r.measured_closed_spans <> 1,
        concat('run ', r.run_id, ' has ', r.measured_closed_spans, ' measured closed spans; expected 1')
    )
) AS c (code_order, code, applies, message)
WHERE c.applies;

COMMENT ON VIEW _comparison_run_reasons IS
'Reasons that concern one run (protocol 10.2, item 5). Grain: comparison_id, cohort, position, code.';
COMMENT ON COLUMN _comparison_run_reasons.comparison_id IS 'The comparison.';
COMMENT ON COLUMN _comparison_run_reasons.item IS 'Place among the groups of reasons.';
COMMENT ON COLUMN _comparison_run_reasons.cohort IS 'Cohort of the run.';
COMMENT ON COLUMN _comparison_run_reasons.position IS 'Input order of the run in its cohort.';
COMMENT ON COLUMN _comparison_run_reasons.code_order IS 'Order of the codes of one run.';
COMMENT ON COLUMN _comparison_run_reasons.run_id IS 'The run.';
COMMENT ON COLUMN _comparison_run_reasons.code IS 'Stable code of the reason.';
COMMENT ON COLUMN _comparison_run_reasons.message IS 'The reason in words.';
