"""A folder given to ingest is walked to any depth: sources in order, hidden entries and loops of links left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_support import write_trace

from planewise import ProfileRun, TraceSession
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


def found(store: Store, folder: Path) -> list[tuple[str, str]]:
    results = ingest_sources(store, [folder])
    return [(Path(result.source).relative_to(folder).as_posix(), result.status) for result in results]


def test_folders_in_folders_are_walked_in_order(store: Store, tmp_path: Path) -> None:
    top = tmp_path / "traces"
    (top / "b" / "deep").mkdir(parents=True)
    (top / "c" / "empty").mkdir(parents=True)
    (top / "b" / ".hidden").mkdir()
    write_trace(top / "b" / ".hidden" / "x.jsonl", "hidden")
    write_trace(top / "b" / "deep" / "y.jsonl", "deep")
    write_trace(top / "a.jsonl", "first")
    (top / "c" / "notes.txt").write_text("nothing to read\n")
    expected = [("a.jsonl", "ingested"), ("b/deep/y.jsonl", "ingested"), ("c/notes.txt", "refused")]
    assert found(store, top) == expected


def test_a_folder_that_is_a_source_is_one_at_any_depth(store: Store, tmp_path: Path) -> None:
    top = tmp_path / "traces"
    (top / "jobs").mkdir(parents=True)
    run = ProfileRun.inference("demo", 1, "cpu")
    with TraceSession.open(top / "jobs" / "rank0", run, run_id="r") as session, session.begin_measurement("step"):
        pass
    assert found(store, top) == [("jobs/rank0", "ingested")]


def test_links_that_form_a_loop_are_followed_once(store: Store, tmp_path: Path) -> None:
    top = tmp_path / "traces"
    (top / "a").mkdir(parents=True)
    write_trace(top / "a" / "t.jsonl", "one")
    (top / "a" / "up").symlink_to(top)
    (top / "again").symlink_to(top / "a")
    (top / "self").symlink_to(top / "self")
    assert found(store, top) == [("a/t.jsonl", "ingested"), ("self", "refused")]


def test_a_folder_of_empty_folders_is_refused_once(store: Store, tmp_path: Path) -> None:
    (tmp_path / "top" / "a" / "b").mkdir(parents=True)
    (result,) = ingest_sources(store, [tmp_path / "top"])
    assert (result.status, result.code) == ("refused", "unknown_format")


def test_a_store_and_loose_evidence_below_the_folder_are_refused_and_not_walked(store: Store, tmp_path: Path) -> None:
    top = tmp_path / "top"
    Store.open(top / "old", create=True)
    (top / "job").mkdir()
    (top / "job" / "evidence.json").write_text("{}")
    results = ingest_sources(store, [top])
    assert [(Path(r.source).name, r.code) for r in results] == [("job", "loose_evidence"), ("old", "is_a_store")]
