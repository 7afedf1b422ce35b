"""Changes of level along a series: found where they are, none where there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planewise.pipeline.change_points import change_points
from planewise.pipeline.series import with_change_points
from planewise.recorder.errors import UsageError

pytest.importorskip("ruptures", reason="the extra series is not installed")


def series(*levels: float, length: int = 12, seed: int = 1) -> list[tuple[int, float]]:
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.normal(level, 1, length) for level in levels])
    return [(10 * n, float(value)) for n, value in enumerate(values)]


def test_two_changes_are_found_at_their_steps() -> None:
    found = change_points(series(100, 110, 95, length=20))
    assert [change["step"] for change in found] == [200, 400]
    assert found[0]["median_after"] - found[0]["median_before"] == pytest.approx(10, abs=1.5)
    assert all(change["confidence"] > 0.999 for change in found)


def test_noise_and_a_wild_value_make_no_change() -> None:
    rates = [len(change_points(series(100, 100, 100, seed=seed))) > 0 for seed in range(40)]
    assert sum(rates) <= 4
    points = series(100, 100)
    points[7] = (70, 10_000.0)
    assert change_points(points) == []


@pytest.mark.parametrize("points", [[], series(1, length=7), [(n, 5.0) for n in range(30)]])
def test_short_and_constant_series_have_none(points: list[tuple[int, float]]) -> None:
    assert change_points(points) == []


def test_a_series_document_gains_its_changes() -> None:
    walls = [{"capture_step": step, "run_id": f"r{step}", "outer_wall_time_ns": int(v)} for step, v in series(100, 200)]
    loss = [{"capture_step": step, "run_id": f"r{step}", "rms": v} for step, v in series(5, 5)]
    document: dict[str, Any] = {"outer_wall_time": walls, "tensor_stats": {"loss": loss}}
    found = with_change_points(document)["change_points"]
    assert [(row["plane"], row["label"], row["step"]) for row in found] == [("spans", None, 120)]
    assert json.dumps(found)


def test_missing_values_are_no_points() -> None:
    walls = [{"capture_step": n, "run_id": f"r{n}", "outer_wall_time_ns": None} for n in range(20)]
    assert with_change_points({"outer_wall_time": walls, "tensor_stats": {}})["change_points"] == []


def test_without_ruptures_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    with pytest.raises(UsageError, match="ruptures") as caught:
        change_points(series(1, 2))
    assert "planewise[series]" in str(caught.value.remedy)
