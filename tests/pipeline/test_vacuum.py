"""Vacuum takes what is old and derived, and never what is true or of today's views."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from store_support import store_with, tree

from planewise.pipeline.cli import run
from planewise.pipeline.publish import publish
from planewise.pipeline.requalify import requalify
from planewise.pipeline.results_index import results_folder
from planewise.pipeline.store import Store
from planewise.pipeline.vacuum import find_waste, vacuum


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """One published run with results, and of other views: old ones, fresh ones; and half-made ones of two ages."""
    found = store_with(tmp_path, "r1")
    publish(found, viewers=False)
    requalify(found)
    made = {"0" * 16: 31, "1" * 16: 29, ".x.tmp-1-aa": 2, ".x.tmp-2-bb": 0}
    for name, days in made.items():
        batch = found.path / "results" / name / "batch"
        batch.mkdir(parents=True)
        (batch / "index.json").write_text("{}")
        age(batch / "index.json", days)
    for file in results_folder(found.path).rglob("*.*"):
        age(file, 100)
    return found


def age(file: Path, days: float) -> None:
    then = time.time() - days * 86_400
    os.utime(file, (then, then))


def test_only_old_results_of_other_views_and_old_half_made_ones_go(store: Store) -> None:
    before = tree(store.path)
    gone = vacuum(store)
    assert [(one.path.name, one.kind, one.bytes) for one in gone] == [
        (".x.tmp-1-aa", "half_made", 2),
        ("0" * 16, "other_views", 2),
    ]
    left = tree(store.path)
    lost = {f"results/{name}/batch/index.json" for name in (".x.tmp-1-aa", "0" * 16)}
    assert left == {name: content for name, content in before.items() if name not in lost}
    assert find_waste(store) == []


def test_a_dry_run_removes_nothing_and_tells_the_same(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(store.path)
    words = ["vacuum", "--store", str(store.path), "--keep-days", "20", "--format", "json"]
    assert run([*words, "--dry-run"]) == 0
    told = capsys.readouterr()
    assert tree(store.path) == before
    assert "would remove 3 places, 6 bytes" in told.err
    assert run(words) == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == json.loads(told.out)
    assert "removed 3 places, 6 bytes" in again.err
    assert run(["vacuum", "--store", str(store.path), "--keep-days", "-1"]) == 2


def test_a_link_in_the_place_of_results_is_left_alone(store: Store, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    age(elsewhere, 400)
    (store.path / "results" / ("2" * 16)).symlink_to(elsewhere)
    vacuum(store)
    assert elsewhere.is_dir()


def test_a_store_without_results_has_no_waste(tmp_path: Path) -> None:
    assert vacuum(Store.open(tmp_path / "s", create=True)) == []
