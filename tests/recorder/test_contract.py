"""Capture contracts and comparison identities: every rule, and the order in which they are judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planewise import CaptureContract, ComparisonIdentity, ContractError, ExpectedGradient
from planewise import GradientContract as Gradients
from planewise import GradientFamilyContract as Family

PLAN = Gradients.new([ExpectedGradient("vb", "w", "trunk")], [Family.active("trunk", 1)])
BROKEN_PLAN = replace(PLAN, manifest_sha256="sha256:0")

IDENTITY = ComparisonIdentity(
    workload_id="train-step",
    model_id="tiny",
    config_id="c0",
    data_id="d0",
    seed_policy="fixed-1",
    physical_batch=4,
    accumulation_steps=1,
    precision="f32",
    device_state="exclusive",
)


def refusal(**members: Any) -> str:
    with pytest.raises(ContractError) as caught:
        CaptureContract(**members).validate()
    return caught.value.code


def labels(*required: str, gpu: tuple[str, ...] = (), cpu: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "required_semantic_labels": required,
        "gpu_expected_semantic_labels": gpu,
        "cpu_only_semantic_labels": cpu,
    }


@pytest.mark.parametrize(
    ("members", "code"),
    [
        (labels("a", " "), "label_blank"),
        (labels("a", "a"), "label_repeated"),
        (labels("a", gpu=("a", "")), "label_blank"),
        (labels("a", cpu=("a", "a")), "label_repeated"),
        (labels("a", gpu=("a", "b")), "label_not_required"),
        (labels("a", gpu=("a",), cpu=("a",)), "label_in_both_classes"),
        (labels("a", "b", gpu=("a",)), "labels_not_partitioned"),
        ({"gradients": "complete"}, "gradient_contract_missing"),
        ({"gradients": "partial", "gradient_contract": PLAN}, "gradient_contract_without_complete_coverage"),
        ({"gradients": "complete", "gradient_contract": BROKEN_PLAN}, "gradient_manifest_digest_mismatch"),
        ({"activations": "complete", "tensors": "complete"}, "activations_need_operations"),
        ({"activations": "complete", "operations": "complete"}, "activations_need_links"),
        ({"operations": "most"}, "unknown_operations"),
        ({"measurement_scope": "all"}, "unknown_measurement_scope"),
        ({"required_semantic_labels": "forward"}, "not_a_list"),
    ],
)
def test_contract_names_the_rule_it_breaks(members: dict[str, Any], code: str) -> None:
    assert refusal(**members) == code


def test_contract_rules_are_judged_in_protocol_order() -> None:
    broken: dict[str, Any] = {**labels("a", "a", gpu=("b",)), "gradients": "complete", "activations": "complete"}
    assert refusal(**broken) == "label_repeated"
    broken["required_semantic_labels"] = ("a",)
    assert refusal(**broken) == "label_not_required"
    broken["gpu_expected_semantic_labels"] = ("a",)
    assert refusal(**broken) == "gradient_contract_missing"
    broken["gradient_contract"] = PLAN
    assert refusal(**broken) == "activations_need_operations"


@pytest.mark.parametrize("link", ["tensors", "logical_memory"])
def test_contract_complete_activations_need_one_link_even_a_partial_one(link: str) -> None:
    CaptureContract(activations="complete", operations="complete", **{link: "partial"}).validate()


def test_contract_without_class_lists_expects_every_label_on_the_gpu() -> None:
    contract = CaptureContract(required_semantic_labels=["a", "b"])
    assert contract.resolved_label_classes() == (("a", "b"), ())
    split = replace(contract, cpu_only_semantic_labels=("b",), gpu_expected_semantic_labels=("a",))
    split.validate()
    assert split.resolved_label_classes() == (("a",), ("b",))


def test_contract_json_leaves_out_what_is_absent_and_reads_back() -> None:
    plain = CaptureContract()
    assert "gradient_contract" not in plain.to_json()
    assert plain.to_json()["required_semantic_labels"] == []
    assert "cpu_only_semantic_labels" not in plain.to_json()
    full = CaptureContract(gradients="complete", gradient_contract=PLAN, **labels("a", cpu=("a",)))
    for contract in (plain, full):
        assert CaptureContract.from_json(contract.to_json()) == contract


@pytest.mark.parametrize(
    ("change", "code"),
    [({"extra": 1}, "unknown_member"), ({"operations": ...}, "missing_member"), ({"tensors": 3}, "unknown_tensors")],
)
def test_contract_json_refuses_what_it_does_not_know(change: dict[str, Any], code: str) -> None:
    value = {**CaptureContract().to_json(), **change}
    value = {name: member for name, member in value.items() if member is not ...}
    with pytest.raises(ContractError) as caught:
        CaptureContract.from_json(value)
    assert caught.value.code == code


def test_identity_is_checked_strings_then_options_then_counts() -> None:
    order = ["workload_id", "model_id", "config_id", "data_id", "seed_policy", "precision", "device_state"]
    order += ["implementation_id", "pair_id"]
    broken = replace(IDENTITY, **dict.fromkeys(order, "\u2003"), physical_batch=0, accumulation_steps=0)
    for name in order:
        with pytest.raises(ContractError) as caught:
            broken.validate()
        assert caught.value.code == f"blank_{name}"
        broken = replace(broken, **{name: "x"})
    for name in ("physical_batch", "accumulation_steps"):
        with pytest.raises(ContractError) as caught:
            broken.validate()
        assert caught.value.code == f"zero_{name}"
        broken = replace(broken, **{name: 1})
    broken.validate()


def test_identity_json_leaves_out_absent_ids_and_reads_back() -> None:
    assert "pair_id" not in IDENTITY.to_json()
    paired = replace(IDENTITY, pair_id="p", implementation_id="git:1")
    assert [ComparisonIdentity.from_json(i.to_json()) for i in (IDENTITY, paired)] == [IDENTITY, paired]


def test_unit_separator_is_not_blank() -> None:
    # Unicode White_Space does not hold U+001F, though str.strip takes it.
    replace(IDENTITY, data_id="\x1f").validate()
