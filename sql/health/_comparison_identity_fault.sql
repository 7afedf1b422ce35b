-- The order of the branches is the order of the checks (protocol 2.3): the first fault is the one that is named. An
-- absent identity makes every branch NULL, so it falls through to no fault.
CREATE OR REPLACE MACRO _comparison_identity_fault(identity) AS CASE
    WHEN is_blank(identity.workload_id) THEN 'comparison_identity.workload_id is blank; expected a text'
    WHEN is_blank(identity.model_id) THEN 'comparison_identity.model_id is blank; expected a text'
    WHEN is_blank(identity.config_id) THEN 'comparison_identity.config_id is blank; expected a text'
    WHEN is_blank(identity.data_id) THEN 'comparison_identity.data_id is blank; expected a text'
    WHEN is_blank(identity.seed_policy) THEN 'comparison_identity.seed_policy is blank; expected a text'
    WHEN is_blank(identity.precision) THEN 'comparison_identity.precision is blank; expected a text'
    WHEN is_blank(identity.device_state) THEN 'comparison_identity.device_state is blank; expected a text'
    WHEN is_blank(identity.implementation_id)
        THEN 'comparison_identity.implementation_id is blank; expected a text, or no value'
    WHEN is_blank(identity.pair_id) THEN 'comparison_identity.pair_id is blank; expected a text, or no value'
    WHEN identity.physical_batch <= 0
        THEN format('comparison_identity.physical_batch is {}; expected more than 0', identity.physical_batch)
    WHEN identity.accumulation_steps <= 0
        THEN format('comparison_identity.accumulation_steps is {}; expected more than 0', identity.accumulation_steps)
END;

COMMENT ON MACRO _comparison_identity_fault IS
'The first rule of protocol 2.3 that a comparison identity breaks, as found and expected; NULL when it is valid or absent.';
