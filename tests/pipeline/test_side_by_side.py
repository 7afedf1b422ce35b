"""Several processes give what one gives, and one that is killed costs what it worked on."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from store_support import store_with, tree, write_trace

from planewise.pipeline.bundle import verify_bundle
from planewise.pipeline.cli import run
from planewise.pipeline.publish import publish
from planewise.pipeline.qualify import qualify
from planewise.pipeline.side_by_side import side_by_side
from planewise.pipeline.store import Store

RUNS = ("a", "b", "c", "d", "e")


def test_bundles_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    trees = []
    for jobs in (1, 3):
        store = store_with(tmp_path / str(jobs), *RUNS)
        qualified = qualify(store, jobs=jobs)
        assert [(row.run_id, row.unchanged) for row in qualified] == [(run_id, False) for run_id in RUNS]
        published = publish(store, jobs=jobs)
        assert [(row.run_id, row.status, row.message) for row in published] == [(r, "published", None) for r in RUNS]
        assert [row.verification for row in published] == [verify_bundle(str(row.bundle_path)) for row in published]
        assert list((store.path / "tmp").iterdir()) == []
        trees.append({name: text for name, text in tree(store.path / "bundles").items() if "viewer" not in name})
        assert len(list(store.path.glob("bundles/*/viewer.html"))) == len(RUNS)
    assert trees[0] == trees[1]


def test_a_broken_run_is_refused_and_the_others_are_published(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_with(tmp_path, *RUNS)
    broken = store.staged()[2]
    (broken.path / "planes" / "spans.parquet").write_bytes(b"no Parquet")
    assert run(["publish", "--store", str(store.path), "--jobs", "2", "--no-viewer", "--format", "json"]) == 3
    rows = {row["run_id"]: row["status"] for row in json.loads(capsys.readouterr().out)}
    assert rows == {**dict.fromkeys(RUNS, "published"), "c": "refused"}


def test_a_night_with_jobs_publishes_every_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [str(write_trace(tmp_path / f"{run_id}.jsonl", run_id)) for run_id in RUNS]
    planned = [{"capture_step": 3, "run_id": run_id} for run_id in RUNS]
    document = {"schema": "planewise/campaign/1", "campaign_id": "c", "entrypoint": "demo::train", "planned": planned}
    manifest = tmp_path / "campaign.json"
    manifest.write_text(json.dumps(document))
    words = ["nightly", *sources, "--store", str(tmp_path / "s"), "--campaign", str(manifest), "--jobs", "2"]
    assert run(words) == 0
    assert "published: 5 new, 0 already published" in capsys.readouterr().out
    assert len(Store.open(tmp_path / "s").bundles()) == 5


def test_a_killed_process_costs_its_things_and_no_more() -> None:
    assert list(side_by_side(_killed_by_3, [1, 2], 2, killed=lambda item: -item)) == [10, 20]
    results = list(side_by_side(_killed_by_3, [3], 2, killed=lambda item: -item))
    assert results == [-3]


def _killed_by_3(item: int) -> int:
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return item * 10
