"""Three real nights, the third with a slowdown in one part of the step: named with its label, and nothing else is."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the torch extra is not installed")

from planewise.pipeline.cli import run  # noqa: E402

ROOT = Path(__file__).parents[2]
RUNS = 8


def example() -> Any:
    spec = importlib.util.spec_from_file_location("train_tiny_nights", ROOT / "examples" / "train_tiny.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(module: Any, folder: Path, night: int, slow: str | None) -> None:
    """Runs of two builds in turn; the second one is slow where it is told to be."""
    planned = module.planned_run

    def as_next(implementation: str, contract: Any) -> Any:
        run_ = planned(implementation, contract)
        return run_.comparison_identity(replace(run_.identity, implementation_id="train_tiny:next"))

    for number in range(RUNS):
        for build in ("base", "next") if number % 2 else ("next", "base"):
            module.planned_run = as_next if build == "next" else planned
            name = f"n{night}-{build}-{number}"
            module.capture("fused", name, folder / name, depth="phases", slow=slow if build == "next" else None)
    module.planned_run = planned


def manifest(folder: Path, night: int) -> Path:
    builds = {"baseline": "base", "candidate": "next"}
    where = {cohort: {"where": f"run_id LIKE 'n{night}-{build}-%'"} for cohort, build in builds.items()}
    runs = [f"n{night}-{build}-{number}" for build in builds.values() for number in range(RUNS)]
    document = {
        "schema": "planewise/campaign/1",
        "campaign_id": "nights",
        "entrypoint": "examples::train_tiny",
        "planned": [{"capture_step": 6, "run_id": run_id} for run_id in runs],
        "comparisons": [{"name": "next against base", **where}],
    }
    path = folder / "campaign.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.slow
def test_a_slowdown_of_the_third_night_is_named_with_its_label(tmp_path: Path, capsys: Any) -> None:
    torch.set_num_threads(1)
    module, told = example(), []
    for night, slow in ((1, None), (2, None), (3, "optimizer")):
        captures = tmp_path / f"night-{night}"
        captures.mkdir()
        record(module, captures, night, slow)
        words = ["nightly", "--store", str(tmp_path / "store"), "--campaign", str(manifest(tmp_path, night))]
        code = run([*words, str(captures), "--fail-on", "regression"])
        told.append((code, capsys.readouterr().out))
    assert [code for code, _ in told] == [0, 0, 1]
    assert not any("slower since tonight" in out for _, out in told[:2])
    third = told[2][1]
    assert "next against base: slower since tonight" in third
    assert "  more host time in train_tiny/update-000006/optimizer: " in third
    (document,) = [json.loads(p.read_text()) for p in (tmp_path / "store").glob("campaigns/*/comparison-*.json")]
    first, *others = document["labels"]
    assert first["label"] == "train_tiny/update-000006/optimizer"
    # One family in twenty names a label by chance; none may come near the real one.
    assert all(abs(row["shift"]) < first["shift"] / 10 for row in others)
