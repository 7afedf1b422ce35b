-- A NULL severity means that the code is not raised in a capture of that outcome. An interrupted capture takes the
-- severities of a failed one. The two family minimum codes are conditional in a failed capture; the relation that
-- finds them applies the condition.
--
-- Structural rules are those of planewise's own formats. A foreign trace never promised to keep them, so it is judged by
-- two codes alone: whether facts that its user supplied are valid (what it leaves open is NULL and breaks nothing), and
-- whether a part of it was lost.
SELECT code_order, code, severity_complete, severity_failed, severity_foreign
FROM (VALUES
    (1, 'run_provenance_invalid', 'error', 'error', 'error'),
    (2, 'complete_with_failure_reason', 'error', NULL, NULL),
    (3, 'failed_without_reason', NULL, 'error', NULL),
    (4, 'terminal_precedes_evidence', 'error', 'error', NULL),
    (5, 'terminal_missing', NULL, 'error', NULL),
    (6, 'capture_failed', NULL, 'warning', NULL),
    (7, 'duplicate_span_id', 'error', 'error', NULL),
    (8, 'root_count', 'error', 'error', NULL),
    (9, 'measurement_count', 'error', NULL, NULL),
    (10, 'open_span', 'error', 'warning', NULL),
    (11, 'unknown_parent', 'error', 'error', NULL),
    (12, 'child_outside_parent', 'error', 'error', NULL),
    (13, 'span_cycle', 'error', 'error', NULL),
    (14, 'unknown_span', 'error', 'error', NULL),
    (15, 'empty_device_interval', 'error', 'error', NULL),
    (16, 'operation_outside_span', 'error', 'error', NULL),
    (17, 'memory_outside_span', 'error', 'error', NULL),
    (18, 'empty_device_memory_sample', 'error', 'error', NULL),
    (19, 'unknown_call_edge_span', 'error', 'error', NULL),
    (20, 'call_edge_hierarchy_mismatch', 'error', 'error', NULL),
    (21, 'call_edge_duration_mismatch', 'error', 'error', NULL),
    (22, 'empty_data_edge_endpoint', 'error', 'error', NULL),
    (23, 'unknown_data_edge_tensor', 'error', 'error', NULL),
    (24, 'allocation_size_mismatch', 'error', 'error', NULL),
    (25, 'duplicate_allocation', 'error', 'error', NULL),
    (26, 'unpaired_free', 'error', 'error', NULL),
    (27, 'retained_allocations', 'warning', 'warning', NULL),
    (28, 'empty_gradient_event_id', 'error', 'error', NULL),
    (29, 'empty_gradient_parameter_key', 'error', 'error', NULL),
    (30, 'duplicate_gradient_event_id', 'error', 'error', NULL),
    (31, 'gradient_state_norm_inconsistent', 'error', 'error', NULL),
    (32, 'gradient_contract_missing', 'error', 'error', NULL),
    (33, 'gradient_contract_without_complete_coverage', 'error', 'error', NULL),
    (34, 'gradient_contract_invalid', 'error', 'error', NULL),
    (35, 'gradient_manifest_duplicate_key', 'error', 'error', NULL),
    (36, 'gradient_manifest_undeclared_key', 'error', 'error', NULL),
    (37, 'gradient_manifest_missing_key', 'error', 'warning', NULL),
    (38, 'gradient_family_non_finite', 'error', 'error', NULL),
    (39, 'gradient_active_family_below_minimum', 'error', 'error', NULL),
    (40, 'gradient_inactive_family_leakage', 'error', 'error', NULL),
    (41, 'gradient_conditional_family_below_minimum', 'error', 'error', NULL),
    (42, 'operations_absent', 'warning', 'warning', NULL),
    (43, 'tensors_absent', 'warning', 'warning', NULL),
    (44, 'logical_memory_absent', 'warning', 'warning', NULL),
    (45, 'physical_memory_absent', 'warning', 'warning', NULL),
    (46, 'device_timing_absent', 'warning', 'warning', NULL),
    (47, 'gradients_absent', 'warning', 'warning', NULL),
    (48, 'forward_absent', 'warning', 'warning', NULL),
    (49, 'backward_absent', 'warning', 'warning', NULL),
    (50, 'optimizer_absent', 'warning', 'warning', NULL),
    (51, 'empty_required_semantic_label', 'error', 'warning', NULL),
    (52, 'duplicate_required_semantic_label', 'error', 'warning', NULL),
    (53, 'required_semantic_label_cardinality', 'error', 'warning', NULL),
    (54, 'empty_semantic_label_classification', 'error', 'warning', NULL),
    (55, 'duplicate_semantic_label_classification', 'error', 'warning', NULL),
    (56, 'unrequired_semantic_label_classification', 'error', 'warning', NULL),
    (57, 'overlapping_semantic_label_classification', 'error', 'warning', NULL),
    (58, 'incomplete_semantic_label_partition', 'error', 'warning', NULL),
    (59, 'capture_incomplete', NULL, NULL, 'warning')
) AS codes (code_order, code, severity_complete, severity_failed, severity_foreign);

COMMENT ON VIEW _health_codes IS
'Every health code, in detection order (protocol 3 and 8.2; the last one is planewise''s own). Grain: code.';
COMMENT ON COLUMN _health_codes.code_order IS 'Place of the code in detection order, from 1.';
COMMENT ON COLUMN _health_codes.code IS 'Stable snake_case code.';
COMMENT ON COLUMN _health_codes.severity_complete IS 'error or warning in a complete capture; NULL: not raised there.';
COMMENT ON COLUMN _health_codes.severity_failed IS
'error or warning in a failed or interrupted capture; NULL: not raised there.';
COMMENT ON COLUMN _health_codes.severity_foreign IS
'error or warning in a foreign trace, whatever its outcome; NULL: a foreign trace is not judged by it.';
