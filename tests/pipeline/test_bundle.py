"""Bundles: every rule of deep verification broken once, semantic verification, and outputs kept out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_support import published

from planewise.pipeline.bundle import (
    is_safe_path,
    refuse_output_inside_bundle,
    second_pass,
    verify_bundle,
    verify_semantic,
    write_manifest,
)
from planewise.recorder.errors import CheckFailed, InputRefused, UsageError, VerificationFailed

A = b"alpha"
A_SHA256 = hashlib.sha256(A).hexdigest()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A small sealed folder: a.txt and sub/b.txt."""
    root = tmp_path / "bundle"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_bytes(A)
    (root / "sub" / "b.txt").write_bytes(b"beta!")
    write_manifest(root, "r1")
    return root


def manifest(bundle: Path, **changes: Any) -> None:
    """Rewrite members of the manifest."""
    value = json.loads((bundle / "bundle.json").read_text())
    (bundle / "bundle.json").write_text(json.dumps(value | changes))


def first_file(bundle: Path, **changes: Any) -> None:
    """Rewrite members of the first declared file."""
    value = json.loads((bundle / "bundle.json").read_text())
    value["files"][0] |= changes
    manifest(bundle, files=value["files"])


def seal(bundle: Path) -> None:
    """Declare the files as they are now, as one would who tampers well."""
    write_manifest(bundle, json.loads((bundle / "bundle.json").read_text())["run_id"])


def test_a_manifest_lists_path_size_and_sha256_by_path_and_never_itself(bundle: Path) -> None:
    text = (bundle / "bundle.json").read_text()
    assert json.loads(text) == {
        "schema": "planewise/bundle/1",
        "run_id": "r1",
        "files": [
            {"path": "a.txt", "bytes": 5, "sha256": A_SHA256},
            {"path": "sub/b.txt", "bytes": 5, "sha256": hashlib.sha256(b"beta!").hexdigest()},
        ],
    }
    assert text.startswith('{\n "schema"')
    assert text.endswith("}\n")


def test_the_receipt_says_what_was_verified(bundle: Path) -> None:
    digest = hashlib.sha256((bundle / "bundle.json").read_bytes()).hexdigest()
    assert verify_bundle(bundle).to_json() == {
        "schema": "planewise/bundle-verification/1",
        "bundle_schema": "planewise/bundle/1",
        "run_id": "r1",
        "manifest_path": "bundle.json",
        "manifest_sha256": digest,
        "files_verified": 2,
        "bytes_verified": 10,
    }


def test_empty_folders_and_upper_case_digests_are_tolerated(bundle: Path) -> None:
    (bundle / "empty" / "deeper").mkdir(parents=True)
    first_file(bundle, sha256=A_SHA256.upper())
    assert verify_bundle(bundle).files_verified == 2


def link_manifest(bundle: Path) -> None:
    """Replace the manifest by a link to it."""
    (bundle / "bundle.json").rename(bundle.parent / "elsewhere.json")
    (bundle / "bundle.json").symlink_to(bundle.parent / "elsewhere.json")


def link_file(bundle: Path) -> None:
    """Replace a declared file by a link to an equal one."""
    (bundle / "a.txt").rename(bundle.parent / "a.txt")
    (bundle / "a.txt").symlink_to(bundle.parent / "a.txt")


def link_folder(bundle: Path) -> None:
    """Replace a folder by a link to an equal one."""
    (bundle / "sub").rename(bundle.parent / "sub")
    (bundle / "sub").symlink_to(bundle.parent / "sub")


TWICE = {"path": "a.txt", "bytes": 5, "sha256": A_SHA256}
TAMPERINGS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no manifest": (lambda b: (b / "bundle.json").unlink(), "no bundle.json"),
    "linked manifest": (link_manifest, "no bundle.json that is a regular file"),
    "folder as manifest": (lambda b: ((b / "bundle.json").unlink(), (b / "bundle.json").mkdir()), "no bundle.json"),
    "no JSON": (lambda b: (b / "bundle.json").write_text("{"), "cannot be read"),
    "no UTF-8": (lambda b: (b / "bundle.json").write_bytes(b'"\xff"'), "cannot be read"),
    "too deep": (lambda b: (b / "bundle.json").write_text("[" * 100_000), "cannot be read"),
    "key twice": (lambda b: (b / "bundle.json").write_text('{"schema": 1, "schema": 2}'), "one key twice"),
    "list": (lambda b: (b / "bundle.json").write_text("[]"), "schema None"),
    "other schema": (lambda b: manifest(b, schema="planewise/bundle/2"), r"bundle/2'; this planewise knows .*/1"),
    "run id a number": (lambda b: manifest(b, run_id=7), "cannot be read"),
    "bytes a float": (lambda b: first_file(b, bytes=5.5), "cannot be read"),
    "bytes negative": (lambda b: first_file(b, bytes=-1), "cannot be read"),
    "bytes true": (lambda b: first_file(b, bytes=True), "cannot be read"),
    "bytes too large": (lambda b: first_file(b, bytes=2**63), "cannot be read"),
    "declares itself": (lambda b: first_file(b, path="bundle.json"), "no safe relative path"),
    "declared twice": (lambda b: manifest(b, files=[TWICE, TWICE]), "declares 'a.txt' twice"),
    "short digest": (lambda b: first_file(b, sha256="ab"), "not 64 hex digits"),
    "prefixed digest": (lambda b: first_file(b, sha256="sha256:" + A_SHA256), "not 64 hex digits"),
    "linked file": (link_file, "'a.txt' is a link or a special file"),
    "linked folder": (link_folder, "'sub' is a link or a special file"),
    "pipe": (lambda b: os.mkfifo(b / "pipe"), "'pipe' is a link or a special file"),
    "undeclared": (lambda b: (b / "sub" / "new").write_text(""), "'sub/new' is not declared"),
    "undeclared manifest below": (
        lambda b: (b / "sub" / "bundle.json").write_text(""),
        "'sub/bundle.json' is not decl",
    ),
    "missing": (lambda b: (b / "a.txt").unlink(), "'a.txt' is declared and missing"),
    "longer": (lambda b: (b / "a.txt").write_bytes(A + b"!"), "has 6 bytes, declared are 5"),
    "changed": (lambda b: (b / "a.txt").write_bytes(b"alphA"), "another sha256"),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found(bundle: Path, name: str) -> None:
    tamper, message = TAMPERINGS[name]
    tamper(bundle)
    with pytest.raises(VerificationFailed, match=message):
        verify_bundle(bundle)


@pytest.mark.parametrize(
    "path", ["", "/a", "../a", "a/../b", "./a", "a/./b", "a//b", "a/", "a\\b", "a\0b", "..", ".", "\ud800"]
)
def test_an_unsafe_path_is_refused_wherever_it_stands(bundle: Path, path: str) -> None:
    assert not is_safe_path(path)
    first_file(bundle, path=path)
    with pytest.raises(VerificationFailed, match=r"no safe relative path|cannot be read"):
        verify_bundle(bundle)


@pytest.mark.parametrize("path", ["a", ".hidden", "a/b c/d.e", "...", "é"])
def test_ordinary_paths_are_safe(path: str) -> None:
    assert is_safe_path(path)


def test_a_file_or_nothing_is_no_bundle(bundle: Path, tmp_path: Path) -> None:
    for path in (bundle / "a.txt", tmp_path / "absent"):
        with pytest.raises(VerificationFailed, match="not a folder"):
            verify_bundle(path)


def test_no_manifest_is_written_over_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(InputRefused, match="'link' is a link"):
        write_manifest(tmp_path, "r1")
    assert not (tmp_path / "bundle.json").exists()


def test_the_second_pass_holds_for_an_untouched_bundle_and_sees_each_change(bundle: Path) -> None:
    receipt = verify_bundle(bundle)
    second_pass(bundle, receipt, ["a.txt"])
    with pytest.raises(VerificationFailed, match=r"'c\.txt' was read and is not declared"):
        second_pass(bundle, receipt, ["c.txt"])
    (bundle / "a.txt").write_bytes(b"alphA")
    second_pass(bundle, receipt, ["sub/b.txt"])
    with pytest.raises(VerificationFailed, match="another sha256"):
        second_pass(bundle, receipt, ["a.txt"])
    seal(bundle)
    with pytest.raises(VerificationFailed, match="manifest changed"):
        second_pass(bundle, receipt, ["a.txt"])


def test_a_published_bundle_verifies_semantically(tmp_path: Path) -> None:
    receipt = verify_semantic(published(tmp_path))
    assert receipt.run_id == "r1"


def test_evidence_that_the_planes_do_not_give_is_found(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    packet = json.loads((bundle / "evidence.json").read_text())
    packet["health"]["capture_complete"] = 1  # Equal to true in Python, and not the same JSON value.
    (bundle / "evidence.json").write_text(json.dumps(packet))
    with pytest.raises(VerificationFailed, match=r"evidence.json"):
        verify_semantic(bundle)
    seal(bundle)
    with pytest.raises(CheckFailed, match="differs in health"):
        verify_semantic(bundle)


def test_evidence_of_other_views_is_named_as_such(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    packet = json.loads((bundle / "evidence.json").read_text())
    (bundle / "evidence.json").write_text(json.dumps(packet | {"views_digest": "sha256:old"}))
    seal(bundle)
    with pytest.raises(CheckFailed, match=r"made by other views \(sha256:old; these are sha256:.*planewise that pub"):
        verify_semantic(bundle)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_bundle_without_readable_evidence_fails_the_semantic_check(tmp_path: Path, content: str | None) -> None:
    bundle = published(tmp_path)
    (bundle / "evidence.json").unlink()
    if content is not None:
        (bundle / "evidence.json").write_text(content)
    seal(bundle)
    with pytest.raises(CheckFailed, match=r"evidence.json"):
        verify_semantic(bundle)


@pytest.mark.parametrize("content", [None, "# another report\n"])
def test_a_report_that_the_evidence_does_not_give_fails_the_semantic_check(tmp_path: Path, content: str | None) -> None:
    bundle = published(tmp_path)
    (bundle / "report.md").unlink()
    if content is not None:
        (bundle / "report.md").write_text(content)
    seal(bundle)
    with pytest.raises(CheckFailed, match=r"report\.md"):
        verify_semantic(bundle)


def test_a_manifest_that_names_another_run_fails_the_semantic_check(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    write_manifest(bundle, "r2")
    with pytest.raises(CheckFailed, match="the planes hold run 'r1', the manifest names 'r2'"):
        verify_semantic(bundle)


def test_planes_that_cannot_be_read_fail_the_semantic_check(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    (bundle / "planes" / "spans.parquet").write_bytes(b"PAR1 no")
    seal(bundle)
    with pytest.raises(InputRefused, match="planes cannot be read"):
        verify_semantic(bundle)


def test_an_output_in_a_bundle_or_through_one_is_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = bundle.parent
    (outside / "into").symlink_to(bundle / "sub")
    (outside / "relative").symlink_to("bundle/sub/../../bundle")
    (outside / "file").symlink_to(bundle / "a.txt")
    (outside / "loop").symlink_to("loop")
    refused = ["bundle/x", "bundle/sub/new/x", "bundle/../x", "into/x", "into/../../x", "relative/x", "file", "loop/x"]
    for path in [bundle, *(outside / name for name in refused)]:
        with pytest.raises(UsageError):
            refuse_output_inside_bundle(path, bundle)
    monkeypatch.chdir(bundle / "sub")
    for path in ("x", "../../x", "../x"):
        with pytest.raises(UsageError, match="published bundle"):
            refuse_output_inside_bundle(path)


def test_an_output_beside_a_bundle_is_fine(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bundle.parent / "aside").symlink_to(bundle.parent)
    monkeypatch.chdir(bundle.parent)
    for path in ("x", "bundle2/x", "new/deep/x", bundle.parent / "x", "aside/x", "new/../x"):
        refuse_output_inside_bundle(path, bundle, bundle / "a.txt")
