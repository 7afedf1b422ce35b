"""The qualify stage: evidence for every staged run, made once, and a broken run alone is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from store_support import EXAMPLE, store_with, tree

from planewise.pipeline import qualify as qualify_module
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.qualify import qualify
from planewise.pipeline.store import Store


def test_every_staged_run_gets_evidence_and_a_report(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1", "a\0b")
    rows = qualify(store)
    assert {(row.run_id, row.unchanged) for row in rows} == {("r1", False), ("a\0b", False)}
    for run in store.staged():
        packet = json.loads((run.path / "evidence.json").read_text())
        assert packet["provenance"]["run_id"] == run.run_id
        assert (run.path / "report.md").read_text()
    assert list((store.path / "tmp").iterdir()) == []


def test_the_status_is_that_of_the_run_health_view(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    ingest_sources(store, [EXAMPLE])
    [row] = qualify(store)
    with store.connect() as con:
        known = con.execute("SELECT status, error_count, warning_count FROM run_health").fetchall()
    assert known == [(row.status, row.errors, row.warnings)]


def test_qualifying_again_changes_nothing_and_says_so(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    [first] = qualify(store)
    before = tree(store.path)
    [second] = qualify(store)
    assert second.unchanged
    assert (second.status, second.errors, second.warnings) == (first.status, first.errors, first.warnings)
    assert tree(store.path) == before


@pytest.mark.parametrize("damage", ["absent", "{", "[]", '{"views_digest": "sha256:old"}'])
def test_evidence_that_is_missing_damaged_or_of_other_views_is_made_again(tmp_path: Path, damage: str) -> None:
    store = store_with(tmp_path, "r1")
    qualify(store)
    evidence = store.staged()[0].path / "evidence.json"
    content = evidence.read_bytes()
    evidence.unlink()
    if damage != "absent":
        evidence.write_text(damage)
    [row] = qualify(store)
    assert not row.unchanged
    assert evidence.read_bytes() == content


def test_a_broken_run_is_refused_alone(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1", "r2", "r3")
    broken = store.find("r2")
    assert broken is not None
    (broken.path / "planes" / "spans.parquet").write_bytes(b"no parquet")
    rows = {row.run_id: row for row in qualify(store)}
    assert {row.run_id: row.status == "refused" for row in rows.values()} == {"r1": False, "r2": True, "r3": False}
    assert (rows["r2"].errors, rows["r2"].warnings) == (None, None)
    assert "no evidence" in str(rows["r2"].message)
    assert not (broken.path / "evidence.json").exists()


def test_a_run_whose_own_row_is_unreadable_is_refused_under_its_folder_name(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1", "r2")
    broken = store.find("r2")
    assert broken is not None
    (broken.path / "planes" / "runs.parquet").write_bytes(b"no parquet")
    refused = [row for row in qualify(store) if row.status == "refused"]
    assert [row.run_id for row in refused] == [broken.key]


def test_batches_give_the_same_evidence_as_one_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_with(tmp_path, "r1", "r2", "r3")
    calls: list[str] = []
    qualify(store, progress=lambda done, total, what: calls.append(f"{done}/{total} {what}"))
    together = [(run.path / "evidence.json").read_bytes() for run in store.staged()]
    for run in store.staged():
        (run.path / "evidence.json").unlink()
    monkeypatch.setattr(qualify_module, "BATCH_BYTES", 1)
    qualify(store, progress=lambda done, total, what: calls.append(f"{done}/{total} {what}"))
    assert [(run.path / "evidence.json").read_bytes() for run in store.staged()] == together
    assert calls == ["0/3 3 runs", "3/3 ", "0/3 1 runs", "1/3 1 runs", "2/3 1 runs", "3/3 "]


def test_an_empty_store_qualifies_nothing(tmp_path: Path) -> None:
    assert qualify(Store.open(tmp_path / "s", create=True)) == []
