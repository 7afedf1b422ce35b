-- Protocol 2.4 checks in this order: empty lists, digest, entries in order, family rules in order, families without a
-- rule. The first fault is the one that is named.
WITH entry_faults AS (
    SELECT run_id, position, CASE
        WHEN is_blank(root) OR is_blank(key) OR is_blank(family)
            THEN format('entry {} of the manifest has a blank root, key or family', position)
        WHEN row_number() OVER (PARTITION BY run_id, root, key ORDER BY position) > 1
            THEN format('entry {} of the manifest repeats {}/{}', position, root, key)
    END AS fault
    FROM _gradient_members
),
member_counts AS (
    SELECT run_id, family, count(*) AS members FROM _gradient_members GROUP BY run_id, family
),
family_faults AS (
    SELECT run_id, position, CASE
        WHEN is_blank(family) THEN format('family rule {} has a blank name', position)
        WHEN row_number() OVER (PARTITION BY run_id, family ORDER BY position) > 1
            THEN format('family rule {} repeats {}', position, family)
        WHEN members IS NULL THEN format('family {} has no member in the manifest', family)
        WHEN expectation = 'inactive' AND min_present <> 0
            THEN format('family {} is inactive with min_present {}; expected 0', family, min_present)
        WHEN expectation IN ('active', 'data_conditional') AND min_present NOT BETWEEN 1 AND members
            THEN format('family {} has min_present {}; expected 1 to {}', family, min_present, members)
        WHEN expectation NOT IN ('active', 'inactive', 'data_conditional')
            THEN format(
                'family {} has the expectation {}; expected active, inactive or data_conditional', family, expectation
            )
    END AS fault
    FROM _gradient_families
    LEFT JOIN member_counts USING (run_id, family)
),
first_entry_fault AS (
    SELECT run_id, min_by(fault, position) AS fault FROM entry_faults WHERE fault IS NOT NULL GROUP BY run_id
),
first_family_fault AS (
    SELECT run_id, min_by(fault, position) AS fault FROM family_faults WHERE fault IS NOT NULL GROUP BY run_id
),
unruled AS (
    SELECT run_id, format('family {} of the manifest has no rule', min(family)) AS fault
    FROM member_counts
    ANTI JOIN _gradient_families USING (run_id, family)
    GROUP BY run_id
),
contracts AS (
    SELECT
        run_id,
        capture_contract.gradients AS declared,
        capture_contract.gradient_contract AS contract,
        capture_contract.gradient_contract IS NOT NULL AS contract_present,
        len(capture_contract.gradient_contract.expected) AS manifest_entries,
        len(capture_contract.gradient_contract.families) AS family_rules
    FROM runs
),
judged AS (
    SELECT
        contracts.*,
        CASE
            WHEN NOT contract_present THEN NULL
            WHEN manifest_entries = 0 THEN 'the manifest is empty'
            WHEN family_rules = 0 THEN 'no family rule exists'
            WHEN contract.manifest_sha256 <> _gradient_manifest_sha256(contract.expected) THEN format(
                'manifest_sha256 is {}; expected {}',
                contract.manifest_sha256, _gradient_manifest_sha256(contract.expected)
            )
            ELSE coalesce(first_entry_fault.fault, first_family_fault.fault, unruled.fault)
        END AS fault
    FROM contracts
    LEFT JOIN first_entry_fault USING (run_id)
    LEFT JOIN first_family_fault USING (run_id)
    LEFT JOIN unruled USING (run_id)
)
SELECT
    run_id,
    declared,
    contract_present,
    CASE WHEN contract_present THEN fault IS NULL END AS contract_valid,
    fault,
    CASE WHEN contract_present THEN contract.manifest_sha256 END AS manifest_sha256,
    CASE WHEN contract_present THEN manifest_entries END AS manifest_entries,
    CASE WHEN contract_present THEN family_rules END AS family_rules
FROM judged;

COMMENT ON VIEW _contract_gradient_valid IS
'The gradient contract of a run and whether it validates (protocol 2.4). Grain: run_id.';
COMMENT ON COLUMN _contract_gradient_valid.run_id IS 'The run.';
COMMENT ON COLUMN _contract_gradient_valid.declared IS 'Declared coverage of gradients: none, partial or complete.';
COMMENT ON COLUMN _contract_gradient_valid.contract_present IS
'True when the capture contract holds a gradient contract.';
COMMENT ON COLUMN _contract_gradient_valid.contract_valid IS
'True when the gradient contract breaks no rule; NULL without one.';
COMMENT ON COLUMN _contract_gradient_valid.fault IS
'First rule that the gradient contract breaks; NULL when it is valid or absent.';
COMMENT ON COLUMN _contract_gradient_valid.manifest_sha256 IS 'Digest the contract declares; NULL without a contract.';
COMMENT ON COLUMN _contract_gradient_valid.manifest_entries IS 'Number of manifest entries; NULL without a contract.';
COMMENT ON COLUMN _contract_gradient_valid.family_rules IS 'Number of family rules; NULL without a contract.';
