-- A NULL severity means that the code is not raised in a capture of that outcome. An interrupted capture takes the
-- severities of a failed one. The two family minimum codes are conditional in a failed capture; the relation that
-- finds them applies the condition.
SELECT code_order, code, severity_complete, severity_failed
FROM (VALUES
    (1, 'run_provenance_invalid', 'error', 'error'),
    (2, 'complete_with_failure_reason', 'error', NULL),
    (3, 'failed_without_reason', NULL, 'error'),
    (4, 'terminal_precedes_evidence', 'error', 'error'),
    (5, 'terminal_missing', NULL, 'error'),
    (6, 'capture_failed', NULL, 'warning'),
    (7, 'duplicate_span_id', 'error', 'error'),
    (8, 'root_count', 'error', 'error'),
    (9, 'measurement_count', 'error', NULL),
    (10, 'open_span', 'error', 'warning'),
    (11, 'unknown_parent', 'error', 'error'),
    (12, 'child_outside_parent', 'error', 'error'),
    (13, 'span_cycle', 'error', 'error'),
    (14, 'unknown_span', 'error', 'error'),
    (15, 'empty_device_interval', 'error', 'error'),
    (16, 'operation_outside_span', 'error', 'error'),
    (17, 'memory_outside_span', 'error', 'error'),
    (18, 'empty_device_memory_sample', 'error', 'error'),
    (19, 'unknown_call_edge_span', 'error', 'error'),
    (20, 'call_edge_hierarchy_mismatch', 'error', 'error'),
    (21, 'call_edge_duration_mismatch', 'error', 'error'),
    (22, 'empty_data_edge_endpoint', 'error', 'error'),
    (23, 'unknown_data_edge_tensor', 'error', 'error'),
    (24, 'allocation_size_mismatch', 'error', 'error'),
    (25, 'duplicate_allocation', 'error', 'error'),
    (26, 'unpaired_free', 'error', 'error'),
    (27, 'retained_allocations', 'warning', 'warning'),
    (28, 'empty_gradient_event_id', 'error', 'error'),
    (29, 'empty_gradient_parameter_key', 'error', 'error'),
    (30, 'duplicate_gradient_event_id', 'error', 'error'),
    (31, 'gradient_state_norm_inconsistent', 'error', 'error'),
    (32, 'gradient_contract_missing', 'error', 'error'),
    (33, 'gradient_contract_without_complete_coverage', 'error', 'error'),
    (34, 'gradient_contract_invalid', 'error', 'error'),
    (35, 'gradient_manifest_duplicate_key', 'error', 'error'),
    (36, 'gradient_manifest_undeclared_key', 'error', 'error'),
    (37, 'gradient_manifest_missing_key', 'error', 'warning'),
    (38, 'gradient_family_non_finite', 'error', 'error'),
    (39, 'gradient_active_family_below_minimum', 'error', 'error'),
    (40, 'gradient_inactive_family_leakage', 'error', 'error'),
    (41, 'gradient_conditional_family_below_minimum', 'error', 'error'),
    (42, 'operations_absent', 'warning', 'warning'),
    (43, 'tensors_absent', 'warning', 'warning'),
    (44, 'logical_memory_absent', 'warning', 'warning'),
    (45, 'physical_memory_absent', 'warning', 'warning'),
    (46, 'device_timing_absent', 'warning', 'warning'),
    (47, 'gradients_absent', 'warning', 'warning'),
    (48, 'forward_absent', 'warning', 'warning'),
    (49, 'backward_absent', 'warning', 'warning'),
    (50, 'optimizer_absent', 'warning', 'warning'),
    (51, 'empty_required_semantic_label', 'error', 'warning'),
    (52, 'duplicate_required_semantic_label', 'error', 'warning'),
    (53, 'required_semantic_label_cardinality', 'error', 'warning'),
    (54, 'empty_semantic_label_classification', 'error', 'warning'),
    (55, 'duplicate_semantic_label_classification', 'error', 'warning'),
    (56, 'unrequired_semantic_label_classification', 'error', 'warning'),
    (57, 'overlapping_semantic_label_classification', 'error', 'warning'),
    (58, 'incomplete_semantic_label_partition', 'error', 'warning')
) AS codes (code_order, code, severity_complete, severity_failed);

COMMENT ON VIEW _health_codes IS 'Every health code, in detection order (protocol 3 and 8.2). Grain: code.';
COMMENT ON COLUMN _health_codes.code_order IS 'Place of the code in detection order, from 1.';
COMMENT ON COLUMN _health_codes.code IS 'Stable snake_case code.';
COMMENT ON COLUMN _health_codes.severity_complete IS 'error or warning in a complete capture; NULL: not raised there.';
COMMENT ON COLUMN _health_codes.severity_failed IS
'error or warning in a failed or interrupted capture; NULL: not raised there.';
