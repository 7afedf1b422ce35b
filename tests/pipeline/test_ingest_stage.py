"""The ingest stage: what is staged, what changes nothing, what is refused and leaves nothing."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_support import EXAMPLE, published, store_with, tree, write_trace

from planewise import ProfileRun, TraceSession
from planewise.ingest.contract import PlaneBatch
from planewise.pipeline import ingest_stage, staging
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store, run_key
from planewise.recorder.errors import UsageError

HOSTILE = ["../..", "/abs", "a\0b", "line\nbreak", "x" * 10_000, "прогон", "..", "con.", "{a}*?[b]"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store.open(tmp_path / "store", create=True)


def record_capture(path: Path, run_id: str) -> Path:
    """A real capture with one measured span and one attachment."""
    run = ProfileRun.inference("demo", 1, "cpu")
    with TraceSession.open(path, run, run_id=run_id) as session, session.begin_measurement("step"):
        pass
    return path


def assert_nothing_new(store: Store) -> None:
    """Neither staging nor tmp holds anything."""
    assert os.listdir(store.path / "staging") == []
    assert os.listdir(store.path / "tmp") == []


def test_a_trace_is_staged_with_its_planes_and_its_own_bytes(store: Store, tmp_path: Path) -> None:
    [result] = ingest_sources(store, [EXAMPLE])
    assert (result.status, result.run_id, result.format) == ("ingested", "run-every-kind", "candle-trace")
    assert result.rows is not None
    assert (result.rows["spans"], result.rows["memory_events"], result.rows["attachments"]) == (5, 6, 1)
    folder = store.path / "staging" / run_key("run-every-kind")
    assert (folder / "attachments" / "trace.jsonl").read_bytes() == EXAMPLE.read_bytes()
    [row] = pq.read_table(folder / "planes" / "attachments.parquet").to_pylist()
    digest = hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()
    assert (row["path"], row["bytes"], row["sha256"]) == ("attachments/trace.jsonl", 5064, digest)
    assert os.listdir(store.path / "tmp") == []


def test_a_compressed_trace_is_kept_compressed(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "t.jsonl.gz"
    source.write_bytes(gzip.compress(EXAMPLE.read_bytes()))
    [result] = ingest_sources(store, [source])
    folder = store.path / "staging" / run_key(str(result.run_id))
    assert (folder / "attachments" / "trace.jsonl.gz").read_bytes() == source.read_bytes()


def test_a_capture_is_staged(store: Store, tmp_path: Path) -> None:
    [result] = ingest_sources(store, [record_capture(tmp_path / "capture", "c1")])
    assert (result.status, result.run_id, result.format) == ("ingested", "c1", "capture")
    assert [run.run_id for run in store.staged()] == ["c1"]


def test_ingesting_the_same_source_twice_changes_nothing(store: Store, tmp_path: Path) -> None:
    source = write_trace(tmp_path / "a.jsonl")
    ingest_sources(store, [source])
    before = tree(store.path)
    copy = tmp_path / "renamed.jsonl"
    copy.write_bytes(source.read_bytes())
    assert [result.status for result in ingest_sources(store, [source, copy])] == ["unchanged", "unchanged"]
    assert tree(store.path) == before


def test_a_known_run_id_with_other_content_is_a_conflict(store: Store, tmp_path: Path) -> None:
    sources = [write_trace(tmp_path / "a.jsonl"), write_trace(tmp_path / "b.jsonl", entrypoint="other")]
    first, second = ingest_sources(store, sources)
    assert (first.status, second.status, second.code) == ("ingested", "refused", "conflict")
    assert "run id 'r1' is in the store with other content" in str(second.message)
    [run] = store.staged()
    assert pq.read_table(run.path / "planes" / "runs.parquet")["entrypoint"].to_pylist() == ["demo::train"]
    assert os.listdir(store.path / "tmp") == []


def test_a_published_run_is_unchanged_and_its_other_content_a_conflict(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    store = Store.open(bundle.parent.parent)
    other = write_trace(tmp_path / "b.jsonl", entrypoint="other")
    results = ingest_sources(store, [tmp_path / "sources" / "0.jsonl", other])
    assert [(result.status, result.code) for result in results] == [("unchanged", None), ("refused", "conflict")]
    assert_nothing_new(store)


@pytest.mark.parametrize("run_id", HOSTILE)
def test_a_hostile_run_id_stays_data(store: Store, tmp_path: Path, run_id: str) -> None:
    before = set(tmp_path.rglob("*"))
    [result] = ingest_sources(store, [write_trace(tmp_path / "t.jsonl", run_id)])
    assert (result.status, result.run_id) == ("ingested", run_id)
    new = {path for path in tmp_path.rglob("*") if path not in before} - {tmp_path / "t.jsonl"}
    folder = store.path / "staging" / run_key(run_id)
    assert {path for path in new if folder not in (path, *path.parents)} <= {store.path / ".lock"}
    assert [run.run_id for run in store.staged()] == [run_id]


def broken(tmp_path: Path) -> Path:
    """A trace whose last record is cut off."""
    path = tmp_path / "broken.jsonl"
    path.write_bytes(EXAMPLE.read_bytes()[:-20])
    return path


def test_a_broken_source_leaves_nothing_and_the_others_go_on(store: Store, tmp_path: Path) -> None:
    good = write_trace(tmp_path / "z.jsonl")
    results = ingest_sources(store, [broken(tmp_path), tmp_path / "absent", good])
    assert [(result.status, result.run_id) for result in results] == [
        ("refused", None),
        ("refused", None),
        ("ingested", "r1"),
    ]
    assert results[1].code == "not_found"
    assert "broken.jsonl" in str(results[0].message)
    assert [run.run_id for run in store.staged()] == ["r1"]
    assert os.listdir(store.path / "tmp") == []


def test_a_folder_of_sources_gives_its_entries_in_order_and_skips_hidden_ones(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    record_capture(folder / "b", "c1")
    record_capture(folder / ".hidden.capture-1", "c2")
    write_trace(folder / "a.jsonl", "t1")
    (folder / "c.txt").write_text("notes")
    results = ingest_sources(store, [folder])
    assert [(Path(r.source).name, r.status, r.run_id) for r in results] == [
        ("a.jsonl", "ingested", "t1"),
        ("b", "ingested", "c1"),
        ("c.txt", "refused", None),
    ]


def test_an_empty_folder_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    [result] = ingest_sources(store, [tmp_path / "empty"])
    assert (result.status, result.code) == ("refused", "unknown_format")


def test_a_link_to_a_source_is_followed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(write_trace(tmp_path / "t.jsonl"))
    [result] = ingest_sources(store, [tmp_path / "link"])
    assert (result.status, result.run_id) == ("ingested", "r1")
    assert not (store.staged()[0].path / "attachments" / "trace.jsonl").is_symlink()


def test_a_bundle_and_what_lies_in_it_and_a_store_are_refused_as_sources(store: Store, tmp_path: Path) -> None:
    bundle = published(tmp_path / "other")
    sources = [bundle, bundle / "attachments" / "trace.jsonl", bundle.parent.parent]
    results = ingest_sources(store, sources)
    assert [(r.status, r.code) for r in results] == [
        ("refused", "published_bundle"),
        ("refused", "published_bundle"),
        ("refused", "is_a_store"),
    ]
    assert_nothing_new(store)


@pytest.mark.parametrize("loose", ["evidence.json", "nsight"])
def test_a_trace_beside_loose_evidence_is_refused(store: Store, tmp_path: Path, loose: str) -> None:
    source = write_trace(tmp_path / "d" / "trace.jsonl")
    (tmp_path / "d" / loose).mkdir()
    for given in (source, source.parent):
        [result] = ingest_sources(store, [given])
        assert (result.status, result.code) == ("refused", "loose_evidence")


def test_a_source_that_changes_while_it_is_read_is_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_trace(tmp_path / "t.jsonl")
    digests = iter(["sha256:before", "sha256:after"])
    monkeypatch.setattr(staging, "source_digest", lambda path: next(digests))
    [result] = ingest_sources(store, [source])
    assert (result.status, result.code) == ("refused", "source_changed")
    assert_nothing_new(store)


def test_the_format_can_be_named_and_an_unknown_one_is_wrong_use(store: Store, tmp_path: Path) -> None:
    source = write_trace(tmp_path / "t.jsonl")
    with pytest.raises(UsageError, match=r"no format 'nonsense'; use one of .*candle-trace"):
        ingest_sources(store, [source], format="nonsense")
    assert ingest_sources(store, [source], format="capture")[0].status == "refused"
    assert ingest_sources(store, [source], format="candle-trace")[0].status == "ingested"


def test_an_attachment_of_a_capture_is_brought_along_and_must_be_the_one_listed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("hello")
    for name in ("good", "bad"):
        with TraceSession.open(tmp_path / name, ProfileRun.inference("demo", 1, "cpu"), run_id=name) as session:
            session.record_attachment(tmp_path / "log.txt", title="Log")
    (tmp_path / "bad" / "attachments" / "log.txt").write_text("jello")
    good, bad = ingest_sources(store, [tmp_path / "good", tmp_path / "bad"])
    assert (good.status, bad.status, bad.code) == ("ingested", "refused", "attachment_mismatch")
    [run] = store.staged()
    assert (run.path / "attachments" / "log.txt").read_text() == "hello"


def test_progress_counts_every_source_and_ends_full(store: Store, tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    source = write_trace(tmp_path / "t.jsonl")
    ingest_sources(store, [source, tmp_path / "no"], progress=lambda *call: calls.append(call))
    assert calls == [(0, 2, "t.jsonl"), (1, 2, "no"), (2, 2, "")]


def test_two_processes_that_ingest_the_same_run_stage_it_once(store: Store, tmp_path: Path) -> None:
    sources = [str(write_trace(tmp_path / "s" / f"{n}.jsonl", f"r{n}")) for n in range(4)]
    code = (
        "import sys; from planewise.pipeline.store import Store\n"
        "from planewise.pipeline.ingest_stage import ingest_sources\n"
        "print(*[r.status for r in ingest_sources(Store.open(sys.argv[1]), sys.argv[2:])])"
    )
    command = [sys.executable, "-c", code, str(store.path), *sources]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    statuses = [child.communicate()[0].split() for child in children]
    assert [sorted(pair) for pair in zip(*statuses, strict=True)] == [["ingested", "unchanged"]] * 4
    assert [run.run_id for run in store.staged()] == ["r0", "r1", "r2", "r3"]
    assert os.listdir(store.path / "tmp") == []


class BrokenReader:
    """A reader that fails as a damaged file, or a full disk, makes one fail."""

    name, doc = "broken", "broken"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def detect(self, path: Path) -> bool:
        return True

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        raise self.error
        yield


@pytest.mark.parametrize("error", [ValueError("bad value"), OSError(5, "I/O error"), pa.ArrowInvalid("no Parquet")])
def test_a_reader_that_fails_refuses_its_source_alone(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(ingest_stage, "detect_format", lambda path: BrokenReader(error))
    [result] = ingest_sources(store, [write_trace(tmp_path / "t.jsonl")])
    assert (result.status, result.code) == ("refused", "unreadable")
    assert str(error) in str(result.message)
    assert_nothing_new(store)


def test_a_full_store_is_no_fault_of_the_source(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = BrokenReader(OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(ingest_stage, "detect_format", lambda path: full)
    with pytest.raises(OSError, match="No space left"):
        ingest_sources(store, [write_trace(tmp_path / "t.jsonl")])
    assert_nothing_new(store)


def test_a_damaged_run_in_the_store_stops_no_ingest(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    (store.staged()[0].path / "planes" / "runs.parquet").write_bytes(b"no parquet")
    again, fresh = tmp_path / "sources" / "0.jsonl", write_trace(tmp_path / "t.jsonl", "r2")
    statuses = [(r.status, r.code) for r in ingest_sources(store, [again, fresh])]
    assert statuses == [("refused", "unreadable_run"), ("ingested", None)]


def test_a_file_name_that_is_no_utf_8_is_kept_as_text(tmp_path: Path) -> None:
    kineto = {"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1,
                                                    "dur": 2}]}  # fmt: skip
    folder = tmp_path / "in"
    write_trace(folder / os.fsdecode(b"candle-\xff.jsonl"))
    (folder / os.fsdecode(b"kineto-\xfe.json")).write_text(json.dumps(kineto))
    store = Store.open(tmp_path / "store", create=True)
    assert [result.status for result in ingest_sources(store, [folder])] == ["ingested"] * 2
    names = store.connect().execute("SELECT source_name FROM runs ORDER BY 1").fetchall()
    assert names == [("candle-\\xff.jsonl",), ("kineto-\\xfe.json",)]
