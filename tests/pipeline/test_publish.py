"""The publish stage: one rename per run, once, and never onto anything."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from store_support import store_with, tree, write_trace

from planewise.pipeline.bundle import verify_bundle, verify_semantic
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.publish import publish, publish_folder
from planewise.pipeline.qualify import qualify
from planewise.recorder.errors import Conflict


def test_a_staged_run_becomes_a_whole_read_only_bundle(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    [result] = publish(store)
    [bundle] = store.bundles()
    assert (result.run_id, result.status, result.bundle_path) == ("r1", "published", str(bundle.path))
    assert store.staged() == []
    assert verify_semantic(bundle.path) == result.verification
    assert {"bundle.json", "evidence.json", "report.md", "attachments/trace.jsonl"} <= tree(bundle.path).keys()
    assert {path.stat().st_mode & 0o222 for path in bundle.path.rglob("*") if path.is_file()} == {0}


def test_the_receipt_is_a_publication_document(tmp_path: Path) -> None:
    [result] = publish(store_with(tmp_path, "r1"))
    document = result.to_json()
    assert list(document) == ["schema", "status", "bundle_path", "run_id", "verification"]
    assert (document["schema"], document["status"]) == ("planewise/publication/1", "published")
    assert document["verification"]["manifest_sha256"] == result.manifest_sha256


def test_publishing_again_publishes_nothing_anew_and_says_so(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1", "r2")
    first = publish(store)
    before = tree(store.path)
    second = publish(store)
    assert [row.status for row in second] == ["already_published"] * 2
    assert [(r.run_id, r.bundle_path, r.manifest_sha256) for r in second] == [
        (r.run_id, r.bundle_path, r.manifest_sha256) for r in first
    ]
    assert tree(store.path) == before


def test_a_failed_run_is_published_with_the_evidence_that_says_so(tmp_path: Path) -> None:
    store = store_with(tmp_path)
    source = write_trace(tmp_path / "failed.jsonl")
    lines = source.read_text().splitlines()
    terminal = json.loads(lines[-1])
    lines[-1] = json.dumps(terminal | {"outcome": "failed", "reason": "out of memory"})
    source.write_text("\n".join(lines) + "\n")
    assert ingest_sources(store, [source])[0].status == "ingested"
    [result] = publish(store)
    assert result.status == "published"
    packet = json.loads((store.bundles()[0].path / "evidence.json").read_text())
    assert packet["health"]["capture_complete"] is False


def test_what_a_killed_publication_left_in_staging_is_overwritten(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    qualify(store)
    folder = store.staged()[0].path
    (folder / "bundle.json").write_text("half")
    (folder / "bundle.json").chmod(0o444)
    (folder / ".evidence.json.tmp-1f-00ff").write_text("half")
    [result] = publish(store)
    assert result.status == "published"
    assert ".evidence.json.tmp-1f-00ff" not in tree(store.bundles()[0].path)


def test_a_run_without_evidence_stays_staged_and_stops_no_other(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1", "r2")
    broken = store.find("r1")
    assert broken is not None
    (broken.path / "planes" / "spans.parquet").write_bytes(b"no parquet")
    rows = {row.run_id: row for row in publish(store)}
    assert {run_id: row.status for run_id, row in rows.items()} == {"r1": "refused", "r2": "published"}
    assert "no evidence" in str(rows["r1"].message)
    assert [run.run_id for run in store.staged()] == ["r1"]


def test_a_link_in_a_staged_run_refuses_it(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    (store.staged()[0].path / "link").symlink_to("/etc/passwd")
    [result] = publish(store)
    assert (result.status, result.bundle_path) == ("refused", None)
    assert store.bundles() == []


def test_something_at_the_destination_is_never_overwritten(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    [run] = store.staged()
    (store.path / "bundles" / run.key).mkdir()
    (store.path / "bundles" / run.key / "mine").write_text("keep")
    [result] = publish(store)
    assert (result.status, "nothing was overwritten" in str(result.message)) == ("refused", True)
    assert tree(store.path / "bundles") == {f"{run.key}/mine": b"keep"}


@pytest.mark.parametrize("taken", ["folder", "file", "dangling link"])
def test_a_loose_destination_in_any_form_is_a_conflict(tmp_path: Path, taken: str) -> None:
    staged, destination = tmp_path / "staged", tmp_path / "destination"
    staged.mkdir()
    if taken == "folder":
        destination.mkdir()
    elif taken == "file":
        destination.write_text("x")
    else:
        destination.symlink_to("nowhere")
    with pytest.raises(Conflict):
        publish_folder(staged, destination, "r1")
    assert staged.is_dir()


def test_a_bundle_whose_manifest_vanished_is_reported(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    publish(store)
    (store.bundles()[0].path / "bundle.json").unlink()
    [result] = publish(store)
    assert (result.run_id, result.status) == ("r1", "refused")
    assert "bundle.json: cannot be read" in str(result.message)


def test_a_bundle_whose_manifest_is_damaged_is_named_by_its_planes(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    publish(store)
    manifest = store.bundles()[0].path / "bundle.json"
    manifest.chmod(0o644)
    manifest.write_bytes(b"{")
    [result] = publish(store)
    assert (result.run_id, result.status) == ("r1", "already_published")
    assert result.manifest_sha256 == hashlib.sha256(b"{").hexdigest()


def test_bundle_paths_maps_run_ids_to_verified_folders(tmp_path: Path) -> None:
    store = store_with(tmp_path, "../..", "r2")
    publish(store)
    assert {run_id: verify_bundle(path).run_id for run_id, path in store.bundle_paths().items()} == {
        "../..": "../..",
        "r2": "r2",
    }


def test_two_processes_that_publish_one_store_publish_each_run_once(tmp_path: Path) -> None:
    store = store_with(tmp_path, *(f"r{n}" for n in range(5)))
    qualify(store)
    code = (
        "import sys; from planewise.pipeline.store import Store\n"
        "from planewise.pipeline.publish import publish\n"
        "print(*[r.status for r in publish(Store.open(sys.argv[1]))])"
    )
    command = [sys.executable, "-c", code, str(store.path)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    statuses = [child.communicate()[0].split() for child in children]
    assert [sorted(pair) for pair in zip(*statuses, strict=True)] == [["already_published", "published"]] * 5
    assert store.staged() == []
    assert [verify_bundle(bundle.path).run_id for bundle in store.bundles()] == [f"r{n}" for n in range(5)]
