"""The doctor names what is wrong with a store, changes nothing unasked, and puts right only what loses nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from store_support import store_with

from planewise.pipeline.bundle import verify_bundle
from planewise.pipeline.catalog import build_catalog
from planewise.pipeline.cli import run
from planewise.pipeline.publish import publish
from planewise.pipeline.requalify import requalify
from planewise.pipeline.results_index import results_folder
from planewise.pipeline.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two published runs, sealed, with results, and a current catalogue."""
    found = store_with(tmp_path, "r1", "r2")
    publish(found, viewers=False)
    requalify(found)
    build_catalog(found.path)
    return found


def findings(store: Store, capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["doctor", "--store", str(store.path), "--format", "json", *words]) == code
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def tree(store: Store) -> dict[str, tuple[bytes, int]]:
    return {str(p): (p.read_bytes(), p.stat().st_mode) for p in store.path.rglob("*") if p.is_file()}


def test_a_sound_store_has_no_findings(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert findings(store, capsys) == []


@pytest.mark.parametrize("name", ["evidence.json", "report.md", "planes/runs.parquet", "attachments/trace.jsonl"])
def test_a_flipped_bit_is_an_error_with_the_files_name(
    store: Store, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = store.bundles()[0].path / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.chmod(0o644)
    file.write_bytes(content)
    file.chmod(0o444)
    [row] = findings(store, capsys, code=1)
    assert (row["severity"], row["code"], name in row["message"]) == ("error", "bundle_damaged", True)


def test_a_cut_file_is_found_quickly_too(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    file = store.bundles()[0].path / "planes" / "spans.parquet"
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1])
    file.chmod(0o444)
    assert [row["code"] for row in findings(store, capsys, "--quick", code=1)] == ["bundle_damaged"]


def test_a_bundle_that_can_be_written_is_sealed_on_demand(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    (store.bundles()[0].path / "report.md").chmod(0o644)
    before = tree(store)
    assert [row["code"] for row in findings(store, capsys)] == ["bundle_writable"]
    assert tree(store) == before
    findings(store, capsys, "--fix")
    assert findings(store, capsys) == []


def test_a_stale_catalogue_is_rebuilt_on_demand(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    (store.path / "planewise.duckdb").write_bytes(b"nonsense")
    assert [row["code"] for row in findings(store, capsys, "--fix")] == ["catalogue_stale"]
    assert findings(store, capsys) == []


def test_strays_and_misplaced_bundles_are_named(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (run.path for run in store.bundles())
    (store.path / "bundles" / "notes.txt").write_text("mine")
    place = first.with_name(first.name[:-16] + "0" * 16)
    shutil.move(first, place)
    rows = findings(store, capsys, code=1)
    assert {row["code"] for row in rows} == {"stray", "wrong_folder"}
    assert verify_bundle(second)


def test_a_run_that_is_staged_and_published_is_an_error(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = store.bundles()[0].path
    shutil.copytree(bundle, store.path / "staging" / bundle.name, ignore=shutil.ignore_patterns("bundle.json"))
    codes = [row["code"] for row in findings(store, capsys, code=1)]
    assert codes == ["staged_and_published", "staged_qualified"]


def test_a_damaged_table_and_unqualified_runs_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_with(tmp_path, "r1")
    build_catalog(store.path)
    (store.path / "tables" / "campaign_planned" / "c.parquet").write_bytes(b"PAR1")
    rows = findings(store, capsys, code=1)
    assert [(row["severity"], row["code"]) for row in rows] == [
        ("note", "staged_unqualified"),
        ("error", "table_damaged"),
    ]


def test_a_store_of_a_newer_version_is_refused_with_both_versions(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    (store.path / "store.json").write_text(json.dumps({"schema": "planewise/store/9"}))
    assert run(["doctor", "--store", str(store.path)]) == 3
    assert "planewise/store/9" in capsys.readouterr().err


def test_missing_results_are_a_note_and_fixed(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(results_folder(store.path))
    [finding] = findings(store, capsys)
    assert (finding["severity"], finding["code"]) == ("note", "results_missing")
    assert finding["message"].startswith("2 published runs")
    findings(store, capsys, "--fix")
    assert findings(store, capsys) == []
