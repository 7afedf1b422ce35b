"""Campaign manifests, their load errors in order, and the state of every planned capture (protocol 11.1, 11.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bundles import publish
from cohorts import add_run

from planewise.pipeline.campaign import campaign_status, load_campaign
from planewise.pipeline.campaign_manifest import PlannedCapture, PlannedComparison
from planewise.recorder.errors import IncompatibleInput, InputRefused
from support import TinyStore

FOREIGN = "candle-graph/campaign/1"
OWN = "planewise/campaign/1"


def write(folder: Path, **members: Any) -> Path:
    """A manifest of the trace protocol, with some members changed; a member set to None is left out."""
    document = {
        "schema": FOREIGN,
        "campaign_id": "c1",
        "entrypoint": "demo",
        "planned": [{"capture_step": 3, "bundle": "profile/step-3"}],
    }
    document |= members
    path = folder / "campaign.json"
    path.write_text(json.dumps({name: value for name, value in document.items() if value is not None}))
    return path


def plan(*captures: tuple[int, str]) -> list[dict[str, Any]]:
    return [{"capture_step": step, "bundle": bundle} for step, bundle in captures]


def test_the_protocols_example_loads(tmp_path: Path) -> None:
    campaign = load_campaign(write(tmp_path, entrypoint="demo::train"))
    assert (campaign.schema, campaign.campaign_id, campaign.entrypoint) == (FOREIGN, "c1", "demo::train")
    assert campaign.planned == (PlannedCapture(3, bundle="profile/step-3"),)
    assert (campaign.comparisons, campaign.base_dir) == ((), tmp_path)


def test_step_zero_is_not_refused(tmp_path: Path) -> None:
    assert load_campaign(write(tmp_path, planned=plan((0, "a")))).planned[0].capture_step == 0


@pytest.mark.parametrize("schema", [None, "candle-graph/campaign/2", "planewise/campaign/2", 1])
def test_another_schema_is_incompatible_and_named(tmp_path: Path, schema: Any) -> None:
    with pytest.raises(IncompatibleInput, match="knows planewise/campaign/1 and candle-graph/campaign/1"):
        load_campaign(write(tmp_path, schema=schema, campaign_id=7))


@pytest.mark.parametrize(
    ("members", "position", "code"),
    [
        ({"campaign_id": " "}, "campaign_id", "blank_campaign_id"),
        ({"campaign_id": "\u3000", "entrypoint": ""}, "campaign_id", "blank_campaign_id"),
        ({"entrypoint": "", "planned": []}, "entrypoint", "blank_entrypoint"),
        ({"planned": []}, "planned", "nothing_planned"),
        ({"planned": plan((3, "a"), (3, "../b"))}, "planned[1].capture_step", "repeated_capture_step"),
        ({"planned": plan((3, "a"), (4, "../a"))}, "planned[1].bundle", "unsafe_path"),
        ({"planned": plan((3, "a"), (4, "a"), (4, "b"))}, "planned[1].bundle", "repeated_bundle"),
        ({"planned": [{"capture_step": "3", "bundle": "a"}]}, "planned[0].capture_step", "bad_manifest"),
        ({"planned": [{"capture_step": 2**63, "bundle": "a"}]}, "planned[0].capture_step", "bad_manifest"),
        ({"planned": [{"capture_step": 3, "run_id": "r"}]}, "planned[0]", "bad_manifest"),
        ({"planned": None}, None, "bad_manifest"),
        ({"comparisons": []}, None, "bad_manifest"),
    ],
)
def test_load_errors_come_in_the_order_of_the_protocol(
    tmp_path: Path, members: dict[str, Any], position: str | None, code: str
) -> None:
    with pytest.raises(InputRefused) as caught:
        load_campaign(write(tmp_path, **members))
    assert (caught.value.position, caught.value.code) == (position, code)
    assert caught.value.source == str(tmp_path / "campaign.json")


@pytest.mark.parametrize("bundle", ["", "/a", "a\\b", "a/../b", "./a", "a//b", "a/", "..", "a\0b"])
def test_a_bundle_path_is_relative_and_of_ordinary_names(tmp_path: Path, bundle: str) -> None:
    with pytest.raises(InputRefused) as caught:
        load_campaign(write(tmp_path, planned=plan((3, bundle))))
    assert caught.value.code == "unsafe_path"


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"{", "bad_json"), (b"\xff", "bad_json"), (b'{"schema":"x","schema":"y"}', "bad_json"), (b"[]", "incompatible")],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "campaign.json"
    path.write_bytes(content)
    with pytest.raises(InputRefused) as caught:
        load_campaign(path)
    assert caught.value.code == code


def test_a_manifest_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputRefused, match="cannot be read"):
        load_campaign(tmp_path / "none.json")


def test_our_manifest_repeats_steps_names_runs_and_declares_cohorts(tmp_path: Path) -> None:
    planned = [{"capture_step": 3, "run_id": "a"}, {"capture_step": 3, "bundle": "b/3"}]
    comparisons = [
        {"name": "o'neil", "baseline": {"implementation_id": "it's"}, "candidate": {"where": "phase = 'infer'"}}
    ]
    campaign = load_campaign(write(tmp_path, schema=OWN, planned=planned, comparisons=comparisons))
    assert campaign.planned == (PlannedCapture(3, run_id="a"), PlannedCapture(3, bundle="b/3"))
    predicate = "comparison_identity.implementation_id = 'it''s'"
    assert campaign.comparisons == (PlannedComparison("o'neil", predicate, "phase = 'infer'"),)


COHORT = {"where": "true"}
COHORTS = {"baseline": COHORT, "candidate": COHORT}


@pytest.mark.parametrize(
    ("members", "position", "code"),
    [
        ({"planned": [{"capture_step": 3}]}, "planned[0]", "bad_manifest"),
        ({"planned": [{"capture_step": 3, "run_id": "a", "bundle": "b"}]}, "planned[0]", "bad_manifest"),
        ({"planned": [{"capture_step": 3, "run_id": "a"}] * 2}, "planned[1].run_id", "repeated_run_id"),
        ({"planned": plan((3, "a"), (3, "a"))}, "planned[1].bundle", "repeated_bundle"),
        (
            {"comparisons": [{"name": "x", "baseline": {}, "candidate": COHORT}]},
            "comparisons[0].baseline",
            "bad_manifest",
        ),
        (
            {"comparisons": [{"name": " ", **COHORTS}]},
            "comparisons[0].name",
            "blank_name",
        ),
        (
            {"comparisons": [{"name": "x", **COHORTS}] * 2},
            "comparisons[1].name",
            "repeated_name",
        ),
    ],
)
def test_our_manifest_keeps_its_own_rules(tmp_path: Path, members: dict[str, Any], position: str, code: str) -> None:
    with pytest.raises(InputRefused) as caught:
        load_campaign(write(tmp_path, schema=OWN, **members))
    assert (caught.value.position, caught.value.code) == (position, code)


def states(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [capture["state"] for capture in document["captures"]]


def test_a_published_bundle_is_reported_with_its_digest(tiny: TinyStore, tmp_path: Path) -> None:
    add_run(tiny, "r3", 5)
    publish(tiny, "r3", tmp_path / "profile" / "step-3")
    document = campaign_status(load_campaign(write(tmp_path)))
    assert list(document) == [
        *("schema", "campaign_id", "entrypoint", "planned", "published", "missing", "failed", "captures")
    ]
    assert document["schema"] == "planewise/campaign-status/1"
    [capture] = document["captures"]
    digest = capture["state"].pop("manifest_sha256")
    assert len(digest) == 64
    assert capture == {
        "capture_step": 3,
        "bundle": "profile/step-3",
        "state": {"state": "published", "run_id": "r3"},
    }


def test_every_state_is_told_sorted_by_step_and_counted(tiny: TinyStore, tmp_path: Path) -> None:
    add_run(tiny, "good", 5, capture_step=2, warmup_steps=0)
    add_run(tiny, "lost", 5, capture_step=3, outcome="failed", failure_reason="loss not finite")
    add_run(tiny, "cut", 5, capture_step=4, outcome=None, terminal_timestamp_ns=None)
    add_run(tiny, "alien", 5, capture_step=5, entrypoint="other")
    add_run(tiny, "late", 5, capture_step=9)
    for run_id in ("good", "lost", "cut", "alien", "late"):
        publish(tiny, run_id, tmp_path / run_id)
    publish(tiny, "good", tmp_path / "torn")
    (tmp_path / "torn" / "planes" / "spans.parquet").unlink()
    planned = plan((8, "none"), (7, "torn"), (6, "late"), (5, "alien"), (4, "cut"), (3, "lost"), (2, "good"))
    document = campaign_status(load_campaign(write(tmp_path, planned=planned)))
    assert [capture["bundle"] for capture in document["captures"]] == [name["bundle"] for name in planned[::-1]]
    found = states(document)
    assert found[0]["state"] == "published"
    assert found[1] == {"state": "failed_run", "run_id": "lost", "reason": "loss not finite"}
    assert found[2] == {"state": "failed_run", "run_id": "cut", "reason": "interrupted: no terminal record"}
    assert found[3] == {
        "state": "identity_mismatch",
        "message": "the run has entrypoint other; the manifest has demo",
    }
    assert found[4]["message"] == "the run has capture step 9; planned was 6"
    assert found[5]["state"] == "verification_failed"
    assert "declared and missing" in found[5]["message"]
    assert found[6] == {"state": "missing"}
    counts = {name: document[name] for name in ("planned", "published", "missing", "failed")}
    assert counts == {"planned": 7, "published": 1, "missing": 1, "failed": 5}


def test_a_wrong_entrypoint_is_told_before_a_wrong_step_and_before_a_failure(tiny: TinyStore, tmp_path: Path) -> None:
    add_run(tiny, "r", 5, capture_step=9, entrypoint="other", outcome="failed", failure_reason="x")
    publish(tiny, "r", tmp_path / "a")
    [state] = states(campaign_status(load_campaign(write(tmp_path, planned=plan((3, "a"))))))
    assert (state["state"], "entrypoint" in state["message"]) == ("identity_mismatch", True)


def test_structural_health_is_not_consulted(tiny: TinyStore, tmp_path: Path) -> None:
    add_run(tiny, "r", 5, correlation_id=" ")  # an error of provenance
    publish(tiny, "r", tmp_path / "a")
    [state] = states(campaign_status(load_campaign(write(tmp_path, planned=plan((3, "a"))))))
    assert state["state"] == "published"


@pytest.mark.parametrize("held", ["other", None])
def test_a_bundle_whose_planes_hold_another_run_fails(tiny: TinyStore, tmp_path: Path, held: str | None) -> None:
    from planewise.pipeline.bundle import write_manifest

    add_run(tiny, "other", 5)
    bundle = publish(tiny, "other", tmp_path / "a")
    if held is None:
        (bundle / "planes" / "runs.parquet").unlink()
    write_manifest(bundle, "r")
    [state] = states(campaign_status(load_campaign(write(tmp_path, planned=plan((3, "a"))))))
    assert state["state"] == "verification_failed"
    assert "runs plane" in state["message"]


def test_planned_run_ids_are_looked_up_in_the_store(tiny: TinyStore, tmp_path: Path) -> None:
    for run_id in ("a", "b"):
        add_run(tiny, run_id, 5)
    known = {"a": publish(tiny, "a", tmp_path / "elsewhere" / "a"), "wrong": publish(tiny, "b", tmp_path / "b")}
    planned = [{"capture_step": 3, "run_id": run_id} for run_id in ("a", "gone", "wrong")]
    document = campaign_status(load_campaign(write(tmp_path, schema=OWN, planned=planned)), find_bundle=known.get)
    first, second, third = document["captures"]
    assert (first["run_id"], first["bundle"], first["state"]["state"]) == ("a", str(known["a"]), "published")
    assert second == {"capture_step": 3, "run_id": "gone", "bundle": None, "state": {"state": "missing"}}
    assert third["state"] == {"state": "identity_mismatch", "message": "the bundle holds run b; planned was wrong"}


def test_two_bundles_with_different_runs_of_one_id_are_told_apart(tiny: TinyStore, tmp_path: Path) -> None:
    add_run(tiny, "r", 5)
    publish(tiny, "r", tmp_path / "a")
    other = TinyStore()
    add_run(other, "r", 5, capture_step=4)
    publish(other, "r", tmp_path / "b")
    planned = plan((3, "a"), (4, "b"))
    first, second = states(campaign_status(load_campaign(write(tmp_path, planned=planned))))
    assert first["state"] == "published"
    assert second == {"state": "verification_failed", "message": "the run id 'r' is also that of a"}
