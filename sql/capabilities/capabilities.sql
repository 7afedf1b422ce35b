-- One list entry is one row of the table in protocol 7.3: its base rule, and whether the two adjustments reach it. The
-- first three know about validity and outcome themselves. Physical memory and provenance do not hang on the trace, so
-- only a capture that did not complete lowers them.
--
-- A foreign trace is not judged by the structural rules, so nothing rests on them: its spans are a sample, and an outer
-- wall time exists only where its user named the measured span. Its contract is what its reader could tell from the
-- rows, not a word of the producer, so it counts as no declaration.
--
-- No Nsight reader exists yet, so no run has GPU evidence to correlate or to bind.
WITH issues AS (
    SELECT
        run_id,
        bool_or(severity = 'error') FILTER (about_gradients) AS gradient_errors,
        bool_or(severity = 'warning') FILTER (about_gradients) AS gradient_warnings,
        bool_or(code IN ('duplicate_required_semantic_label', 'required_semantic_label_cardinality')) AS label_issues
    FROM (
        SELECT *, starts_with(code, 'gradient_')
            OR code IN ('duplicate_gradient_event_id', 'empty_gradient_event_id') AS about_gradients
        FROM health_issues
    )
    GROUP BY run_id
),
judged AS (
    SELECT
        runs.run_id,
        runs.schema AS trace_schema,
        runs.schema || ' validation' AS validation,
        CASE WHEN _is_foreign(runs.source_format)
            THEN {
                device_timing: 'none', operations: 'none', tensors: 'none', gradients: 'none', logical_memory: 'none',
                physical_memory: 'none'
            }
            ELSE {
                device_timing: runs.capture_contract.device_timing,
                operations: runs.capture_contract.operations,
                tensors: runs.capture_contract.tensors,
                gradients: runs.capture_contract.gradients,
                logical_memory: runs.capture_contract.logical_memory,
                physical_memory: runs.capture_contract.physical_memory
            }
        END AS declared,
        _is_foreign(runs.source_format) AS is_foreign,
        health.structurally_valid AS valid,
        health.capture_complete AS complete,
        coalesce(measured.spans, 0) = 1 AS one_measured_span,
        coalesce(issues.gradient_errors, false) AS gradient_errors,
        coalesce(issues.gradient_warnings, false) AS gradient_warnings,
        coalesce(issues.label_issues, false) AS label_issues,
        gradient,
        coverage
    FROM runs
    JOIN run_health AS health USING (run_id)
    JOIN health_coverage AS coverage USING (run_id)
    JOIN _contract_gradient_valid AS gradient USING (run_id)
    LEFT JOIN issues USING (run_id)
    LEFT JOIN _measured_closed_spans AS measured USING (run_id)
),
based AS (
    SELECT
        run_id,
        trace_schema,
        valid,
        complete,
        unnest([
            {field_order: 1, field: 'structural_trace', kind: 'structural_trace', linked: false, lowered: false,
                state: CASE
                    WHEN valid AND is_foreign THEN {
                        level: 'unavailable', source: 'none',
                        reason: 'a foreign trace is not judged by the structural rules of captures'
                    }
                    WHEN valid THEN {
                        level: 'complete', source: validation, reason: 'no structural rule is broken'
                    }
                    ELSE {
                        level: 'invalid', source: validation, reason: 'at least one structural rule is broken'
                    }
                END},
            {field_order: 2, field: 'outer_wall_time', kind: 'outer_wall_time', linked: false, lowered: false,
                state: CASE
                    WHEN NOT valid THEN {
                        level: 'invalid', source: validation,
                        reason: 'a structurally invalid trace qualifies no outer wall time'
                    }
                    WHEN NOT complete THEN {
                        level: 'unavailable', source: 'none', reason: 'the capture did not complete'
                    }
                    WHEN is_foreign AND one_measured_span THEN {
                        level: 'complete', source: 'supplied measured span',
                        reason: 'the one span that the user named as the measured region ended'
                    }
                    WHEN is_foreign THEN {
                        level: 'unavailable', source: 'none', reason: 'a foreign trace names no measured region'
                    }
                    WHEN one_measured_span THEN {
                        level: 'complete', source: 'measured span',
                        reason: 'exactly one measured span was recorded, and it ended'
                    }
                    ELSE {
                        level: 'invalid', source: 'measured span',
                        reason: 'outer wall time needs exactly one measured span that ended'
                    }
                END},
            {field_order: 3, field: 'nested_host_time', kind: 'nested_host_time', linked: false, lowered: false,
                state: CASE
                    WHEN NOT valid THEN {
                        level: 'invalid', source: validation,
                        reason: 'a structurally invalid trace qualifies no nested host time'
                    }
                    WHEN is_foreign AND coverage.closed_spans > 0 THEN {
                        level: 'partial', source: 'span wall intervals',
                        reason: 'host spans were recorded; whether they nest was not judged'
                    }
                    WHEN is_foreign THEN {
                        level: 'unavailable', source: 'none', reason: 'no host span that ended was recorded'
                    }
                    WHEN complete THEN {
                        level: 'complete', source: 'span wall intervals',
                        reason: 'host spans nest, and all of them ended'
                    }
                    ELSE {
                        level: 'unavailable', source: 'none',
                        reason: 'nested host time needs a capture that completed'
                    }
                END},
            {field_order: 4, field: 'nested_device_time', kind: 'nested_device_time', linked: true, lowered: true,
                state: _observed_state(
                    declared.device_timing, coverage.device_intervals, 'device intervals', 'device timing'
                )},
            {field_order: 5, field: 'operation_coverage', kind: 'operations', linked: true, lowered: true,
                state: _observed_state(
                    declared.operations, coverage.operations, 'trace op events', 'operation coverage'
                )},
            {field_order: 6, field: 'tensor_coverage', kind: 'tensors', linked: true, lowered: true,
                state: _observed_state(
                    declared.tensors, coverage.tensors, 'trace tensor events', 'tensor coverage'
                )},
            {field_order: 7, field: 'gradient_coverage', kind: 'gradients', linked: true, lowered: true,
                state: CASE
                    WHEN declared.gradients <> 'complete' THEN _observed_state(
                        declared.gradients, coverage.gradients, 'trace gradient events', 'gradient coverage'
                    )
                    WHEN NOT gradient.contract_present THEN {
                        level: 'invalid', source: 'exact gradient contract',
                        reason: 'complete gradient coverage needs a gradient contract'
                    }
                    WHEN NOT gradient.contract_valid THEN {
                        level: 'invalid', source: 'exact gradient contract',
                        reason: 'the gradient contract does not validate: ' || gradient.fault
                    }
                    WHEN gradient_errors THEN {
                        level: 'invalid', source: 'exact gradient contract',
                        reason: 'the gradient events break the manifest or a family rule'
                    }
                    WHEN gradient_warnings THEN {
                        level: 'partial', source: 'exact gradient contract',
                        reason: 'the capture ended before the manifest and the family rules could be judged'
                    }
                    ELSE {
                        level: 'complete', source: 'exact gradient contract',
                        reason: format(
                            '{} manifest entries and {} family rules hold under {}',
                            gradient.manifest_entries, gradient.family_rules, gradient.manifest_sha256
                        )
                    }
                END},
            {field_order: 8, field: 'logical_memory_coverage', kind: 'logical_memory', linked: true, lowered: true,
                state: _observed_state(
                    declared.logical_memory, coverage.memory_events, 'storage lifetime events', 'logical memory coverage'
                )},
            {field_order: 9, field: 'physical_memory_coverage', kind: 'physical_memory', linked: false, lowered: true,
                state: _observed_state(
                    declared.physical_memory, coverage.device_memory_samples, 'device memory samples',
                    'physical memory coverage'
                )},
            {field_order: 10, field: 'gpu_correlation', kind: 'gpu_correlation', linked: true, lowered: true,
                state: CASE
                    WHEN label_issues THEN {
                        level: 'invalid', source: 'trace semantic labels',
                        reason: 'a required label repeats, or does not name exactly one span'
                    }
                    ELSE {level: 'unavailable', source: 'none', reason: 'no Nsight directory was given'}
                END},
            {field_order: 11, field: 'provenance_binding', kind: 'provenance_binding', linked: false, lowered: true,
                state: {
                    level: 'unavailable', source: 'none',
                    reason: 'no Nsight directory was given, so no GPU artefact is bound to this run'
                }}
        ]) AS capability
    FROM judged
),
adjusted AS (
    SELECT
        run_id,
        capability,
        _adjusted_state(
            capability.state,
            trace_schema,
            valid OR NOT capability.linked,
            complete OR NOT capability.lowered
        ) AS state
    FROM based
)
SELECT
    run_id,
    capability.field AS field,
    capability.kind AS kind,
    capability.field_order AS field_order,
    state.level AS level,
    state.source AS source,
    state.reason AS reason
FROM adjusted;

COMMENT ON VIEW capabilities IS
'What may be claimed from a run, and why (protocol 7.3). Eleven rows a run. Grain: run_id, field.';
COMMENT ON COLUMN capabilities.run_id IS 'The run.';
COMMENT ON COLUMN capabilities.field IS 'Name of the capability in documents, e.g. operation_coverage.';
COMMENT ON COLUMN capabilities.kind IS 'Id of its kind, as findings and facts name it, e.g. operations.';
COMMENT ON COLUMN capabilities.field_order IS 'Place in the order of the protocol, from 1.';
COMMENT ON COLUMN capabilities.level IS
'complete or partial: available; unavailable: not recorded; invalid: recorded in contradiction to its own rules.';
COMMENT ON COLUMN capabilities.source IS 'What the level rests on; none when nothing does.';
COMMENT ON COLUMN capabilities.reason IS 'Why the level is what it is, in words.';
