"""Planned runs and the selector that gates them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorder_support import TRAINING, document

from planewise import CaptureContract, CaptureSelector, ComparisonIdentity, ContractError, ProfileRun, TraceSession


def test_selector_chooses_one_invocation_counted_from_one() -> None:
    selector = CaptureSelector(3)
    assert [n for n in range(1, 6) if selector.is_selected(n)] == [3]
    assert selector.selected_invocation == 3
    with pytest.raises(ContractError):
        CaptureSelector(0)


def test_training_and_inference_fill_correlation_and_warmup() -> None:
    train, infer = ProfileRun.training("t", 3, "cpu"), ProfileRun.inference("i", 1, "cuda:0")
    assert (train.phase, train.correlation, train.warmup_steps, train.timing_mode) == ("train", "t/update-3", 2, "host")
    assert (infer.phase, infer.correlation, infer.warmup_steps, infer.device) == ("infer", "i/inference-1", 0, "cuda:0")
    assert ProfileRun.training("t", 0, "cpu").warmup_steps == 0


def test_builders_return_new_runs_and_leave_the_old_one() -> None:
    contract = CaptureContract(operations="partial")
    built = TRAINING.tag("a", "1").tag("a", "2").correlation_id("c").capture_contract(contract)
    assert (dict(built.tags), built.correlation, built.contract) == ({"a": "2"}, "c", contract)
    assert (dict(TRAINING.tags), TRAINING.correlation) == ({}, "demo::train/update-3")


def test_region_synchronisation_does_not_claim_every_span() -> None:
    region, every = TRAINING.measured_region_device_synchronized(), TRAINING.device_synchronized()
    assert (region.region_device_synchronized, region.timing_mode) == (True, "host")
    assert (every.region_device_synchronized, every.timing_mode) == (True, "device_synchronized")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"correlation": " "}, "blank_correlation_id"),
        ({"entrypoint": ""}, "blank_entrypoint"),
        ({"capture_step": 0}, "zero_capture_step"),
        ({"capture_step": 2**63}, "integer_out_of_range"),
        ({"capture_step": 10**5000}, "integer_out_of_range"),
        ({"warmup_steps": 3}, "warmup_not_before_capture"),
        ({"device": "\n"}, "blank_device"),
        ({"tags": {"a": "\ud800"}}, "not_utf8"),
        ({"contract": CaptureContract(gradients="complete")}, "gradient_contract_missing"),
    ],
)
def test_open_refuses_a_run_out_of_its_domain_and_writes_nothing(
    tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    with pytest.raises(ContractError) as caught:
        TraceSession.open(tmp_path / "deep" / "capture", replace(TRAINING, **change))
    assert caught.value.code == code
    assert list(tmp_path.iterdir()) == []


def test_header_holds_the_run_under_the_protocols_names(tmp_path: Path) -> None:
    identity = ComparisonIdentity(
        workload_id="w",
        model_id="m",
        config_id="c",
        data_id="d",
        seed_policy="s",
        physical_batch=2,
        accumulation_steps=1,
        precision="f32",
        device_state="x",
    )
    run = TRAINING.comparison_identity(identity).tag("note", "ünïcode")
    with TraceSession.open(tmp_path / "c", run, run_id="../r\n1"):
        pass
    header = document(tmp_path / "c", "header.json")
    assert {name: header[name] for name in ("format", "plane_version", "producer")} == {
        "format": "planewise/capture/1",
        "plane_version": 1,
        "producer": "planewise 0.1.0",
    }
    assert (header["run"]["run_id"], header["run"]["tags"]) == ("../r\n1", {"note": "ünïcode"})
    assert header["run"]["comparison_identity"] == identity.to_json()
    assert ProfileRun.from_json(header["run"]) == run


def test_default_run_ids_name_process_and_time(tmp_path: Path) -> None:
    import os

    with TraceSession.open(tmp_path / "c", TRAINING) as session:
        assert session.run_id.startswith(f"run-{os.getpid()}-")
