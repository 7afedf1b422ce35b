"""Series over bundles and campaigns: keys, order, filters, and errors in order (protocol 11.3, 13.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bundles import publish
from cohorts import add_run

from planewise.pipeline.campaign import load_campaign
from planewise.pipeline.output import to_json
from planewise.pipeline.series import series_of_bundles, series_of_campaign
from planewise.recorder.errors import InputRefused, UsageError, VerificationFailed
from support import TinyStore


def add_step(tiny: TinyStore, folder: Path, step: int, wall_ns: int = 5, **values: Any) -> Path:
    """Publish run r<step> with two loss events, one norm event and one gradient."""
    run_id = f"r{step}"
    add_run(tiny, run_id, wall_ns, **{"capture_step": step, "warmup_steps": 0} | values)
    for label, rms in (("loss", step + 0.5), ("norm", 1.0), ("loss", float(step))):
        event = {
            "span_id": "s0",
            "label": label,
            "rms": rms,
            "abs_max": 2.0,
            "mean": -1.0,
            "elements": 4,
            "non_finite": 1,
        }
        tiny.add("tensor_stats", event, run_id=run_id)
    gradient = {"event_id": "g", "root": "vb", "key": "w", "state": "present", "norm": 0.5}
    tiny.add("gradients", gradient, run_id=run_id)
    return publish(tiny, run_id, folder / run_id)


def test_points_follow_step_order_then_stream_order(tiny: TinyStore, tmp_path: Path) -> None:
    bundles = [add_step(tiny, tmp_path, step, wall_ns=10 * step) for step in (7, 2)]
    document = series_of_bundles(bundles)
    assert list(document) == [
        *("schema", "entrypoint", "coordinate", "label_prefix", "inputs", "outer_wall_time", "tensor_stats"),
        "gradients",
    ]
    assert (document["schema"], document["coordinate"]) == ("planewise/series/1", "capture_step")
    assert [(item["capture_step"], item["bundle"]) for item in document["inputs"]] == [
        (2, str(bundles[1])),
        (7, str(bundles[0])),
    ]
    assert document["outer_wall_time"] == [
        {"capture_step": 2, "run_id": "r2", "outer_wall_time_ns": 20},
        {"capture_step": 7, "run_id": "r7", "outer_wall_time_ns": 70},
    ]
    assert list(document["tensor_stats"]) == ["loss", "norm"]
    assert [point["rms"] for point in document["tensor_stats"]["loss"]] == [2.5, 2.0, 7.5, 7.0]
    assert document["gradients"]["vb/w"][0] == {"capture_step": 2, "run_id": "r2", "state": "present", "norm": 0.5}
    assert to_json(document)


def test_a_point_of_tensor_statistics_has_the_protocols_members(tiny: TinyStore, tmp_path: Path) -> None:
    document = series_of_bundles([add_step(tiny, tmp_path, 3)])
    assert document["tensor_stats"]["norm"] == [
        {
            "capture_step": 3,
            "run_id": "r3",
            "rms": 1.0,
            "abs_max": 2.0,
            "mean": -1.0,
            "non_finite": 1,
            "elements": 4,
        }
    ]


@pytest.mark.parametrize(
    ("prefix", "labels", "gradients"), [("lo", ["loss"], []), ("vb/", [], ["vb/w"]), ("%", [], [])]
)
def test_the_prefix_filters_labels_and_parameters_and_nothing_else(
    tiny: TinyStore, tmp_path: Path, prefix: str, labels: list[str], gradients: list[str]
) -> None:
    document = series_of_bundles([add_step(tiny, tmp_path, 3)], label_prefix=prefix)
    assert (list(document["tensor_stats"]), list(document["gradients"])) == (labels, gradients)
    assert document["label_prefix"] == prefix
    assert (len(document["inputs"]), len(document["outer_wall_time"])) == (1, 1)


@pytest.mark.parametrize(("walls", "expected"), [([], None), ([None], None), ([5, 6], None), ([5, None], 5)], ids=str)
def test_wall_time_is_absent_unless_exactly_one_span_is_measured_and_closed(
    tiny: TinyStore, tmp_path: Path, walls: list[int | None], expected: int | None
) -> None:
    document = series_of_bundles([add_step(tiny, tmp_path, 3, walls=walls)])
    assert document["outer_wall_time"] == [{"capture_step": 3, "run_id": "r3", "outer_wall_time_ns": expected}]


def test_failed_captures_take_part_when_bundles_are_named(tiny: TinyStore, tmp_path: Path) -> None:
    bundle = add_step(tiny, tmp_path, 3, outcome="failed", failure_reason="lost")
    assert series_of_bundles([bundle])["inputs"][0]["run_id"] == "r3"


def test_no_bundle_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="at least one bundle"):
        series_of_bundles([])


@pytest.mark.parametrize(
    ("change", "code"),
    [({"entrypoint": "other", "phase": "train"}, "mixed_entrypoint"), ({"phase": "train"}, "mixed_phase")],
)
def test_bundles_of_another_entrypoint_or_phase_are_refused(
    tiny: TinyStore, tmp_path: Path, change: dict[str, str], code: str
) -> None:
    bundles = [add_step(tiny, tmp_path, 3), add_step(tiny, tmp_path, 4, **change)]
    with pytest.raises(InputRefused) as caught:
        series_of_bundles(bundles)
    assert (caught.value.code, caught.value.source) == (code, str(bundles[1]))


def test_a_step_may_not_repeat(tiny: TinyStore, tmp_path: Path) -> None:
    bundles = [add_step(tiny, tmp_path, 3), add_step(tiny, tmp_path, 4, capture_step=3)]
    with pytest.raises(InputRefused, match="repeats capture step 3"):
        series_of_bundles(bundles)


def test_a_run_id_may_not_repeat(tiny: TinyStore, tmp_path: Path) -> None:
    first = add_step(tiny, tmp_path, 3)
    other = TinyStore()
    add_run(other, "r3", 5, capture_step=4)
    with pytest.raises(InputRefused, match="repeats run id 'r3'"):
        series_of_bundles([first, publish(other, "r3", tmp_path / "other")])


def test_a_bundle_that_does_not_verify_ends_the_series(tiny: TinyStore, tmp_path: Path) -> None:
    bundle = add_step(tiny, tmp_path, 3)
    (bundle / "extra").write_text("x")
    with pytest.raises(VerificationFailed):
        series_of_bundles([bundle])


def manifest(folder: Path, *planned: tuple[int, str]) -> Path:
    path = folder / "campaign.json"
    captures = [{"capture_step": step, "bundle": bundle} for step, bundle in planned]
    document = {"schema": "candle-graph/campaign/1", "campaign_id": "c1", "entrypoint": "demo", "planned": captures}
    path.write_text(json.dumps(document))
    return path


def test_a_campaign_gives_the_series_of_its_published_captures(tiny: TinyStore, tmp_path: Path) -> None:
    for step in (2, 1):
        add_step(tiny, tmp_path, step)
    document = series_of_campaign(load_campaign(manifest(tmp_path, (2, "r2"), (1, "r1"))), label_prefix="loss")
    assert [item["capture_step"] for item in document["inputs"]] == [1, 2]
    assert list(document["tensor_stats"]) == ["loss"]


def test_a_campaign_with_unpublished_captures_is_refused_and_lists_them(tiny: TinyStore, tmp_path: Path) -> None:
    add_step(tiny, tmp_path, 1)
    add_step(tiny, tmp_path, 2, outcome="failed", failure_reason="lost")
    campaign = load_campaign(manifest(tmp_path, (1, "r1"), (2, "r2"), (3, "gone")))
    with pytest.raises(InputRefused) as caught:
        series_of_campaign(campaign)
    assert caught.value.code == "not_published"
    assert "2 of 3 planned captures are not published: step 2, r2: failed_run; step 3, gone: missing" in str(
        caught.value
    )
