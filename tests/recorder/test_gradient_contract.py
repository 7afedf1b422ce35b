"""The gradient manifest: its digest against published values, and its rules in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planewise import ContractError, ExpectedGradient, GradientContract
from planewise import GradientFamilyContract as Family
from planewise.recorder.gradient_contract import manifest_sha256

FROZEN = ExpectedGradient("vb", "frozen.bias", "frozen")
TRUNK = ExpectedGradient("vb", "layer.weight", "trunk")
FAMILIES = (Family.active("trunk", 1), Family.inactive("frozen"))


def test_digest_is_the_protocols_worked_value() -> None:
    digest = "sha256:3eb0aba921ad4af44983feda009f7e1042fe2be52dbb3512dac9bcaaa4aec31a"
    assert manifest_sha256([FROZEN, TRUNK]) == digest
    assert GradientContract.new([FROZEN, TRUNK], FAMILIES).manifest_sha256 == digest


def test_digest_depends_on_the_order_of_the_entries() -> None:
    assert manifest_sha256([TRUNK, FROZEN]) == "sha256:92bb6e2be81c1ae30e88a42700b83c788a17e70793a2bd12993cf573bdea16a6"


def test_digest_is_the_crates_golden_value() -> None:
    entries = [ExpectedGradient("parameters", f"{name}.weight", name) for name in ("trunk", "frozen", "optional")]
    assert manifest_sha256(entries) == "sha256:d7f0b4aa8a4072b9824018c8d3eff5757286f1348366c15ef8780be38945fcc6"


@pytest.mark.parametrize(
    ("expected", "families", "code"),
    [
        ((), (), "gradient_manifest_empty"),
        ((TRUNK,), (), "gradient_families_empty"),
        ((replace(TRUNK, root=""),), FAMILIES, "gradient_root_blank"),
        ((replace(TRUNK, key=" "),), FAMILIES, "gradient_key_blank"),
        ((replace(TRUNK, family="\t"),), FAMILIES, "gradient_family_blank"),
        ((TRUNK, replace(TRUNK, family="other")), FAMILIES, "gradient_key_repeated"),
        ((TRUNK,), (Family.active(" ", 1),), "gradient_family_name_blank"),
        ((TRUNK,), (FAMILIES[0], FAMILIES[0]), "gradient_family_repeated"),
        ((TRUNK,), FAMILIES, "gradient_family_without_members"),
        ((FROZEN,), (replace(FAMILIES[1], min_present=1),), "gradient_family_minimum"),
        ((TRUNK,), (Family.active("trunk", 0),), "gradient_family_minimum"),
        ((TRUNK,), (Family.data_conditional("trunk", 2),), "gradient_family_minimum"),
        ((TRUNK, FROZEN), (FAMILIES[0],), "gradient_family_undeclared"),
    ],
)
def test_contract_names_the_rule_it_breaks(expected: Any, families: Any, code: str) -> None:
    with pytest.raises(ContractError) as caught:
        GradientContract.new(expected, families)
    assert caught.value.code == code


def test_contract_with_another_digest_is_refused_before_its_entries_are_looked_at() -> None:
    contract = GradientContract("sha256:" + "0" * 64, (replace(TRUNK, root=""),), FAMILIES)
    with pytest.raises(ContractError) as caught:
        contract.validate()
    assert caught.value.code == "gradient_manifest_digest_mismatch"


def test_contract_json_reads_back_and_refuses_a_missing_member() -> None:
    contract = GradientContract.new([FROZEN, TRUNK], FAMILIES)
    value = contract.to_json()
    assert value["families"][1] == {"family": "frozen", "expectation": "inactive", "min_present": 0}
    assert GradientContract.from_json(value) == contract
    del value["families"][0]["expectation"]
    with pytest.raises(ContractError, match="expectation"):
        GradientContract.from_json(value)
