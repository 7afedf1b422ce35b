"""Published bundles and their verification: deep, after reading, and semantic (protocol 9.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..recorder.errors import CheckFailed, VerificationFailed
from .fsio import walk
from .guard import refuse_output_inside_bundle
from .manifest import (
    BUNDLE_SCHEMA,
    INT64_MAX,
    MANIFEST,
    DeclaredFile,
    Manifest,
    is_safe_path,
    read_manifest,
    size_and_sha256,
    write_manifest,
)

__all__ = [
    "BUNDLE_SCHEMA",
    "MANIFEST",
    "Receipt",
    "is_safe_path",
    "refuse_output_inside_bundle",
    "second_pass",
    "verify_bundle",
    "verify_semantic",
    "write_manifest",
]

VERIFICATION_SCHEMA = "planewise/bundle-verification/1"
"""Format of a verification receipt."""

_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Receipt:
    """What one deep verification found; true at its moment and silent about the meaning of the files."""

    run_id: str
    manifest_sha256: str
    files_verified: int
    bytes_verified: int

    def to_json(self) -> dict[str, Any]:
        """The receipt as a document of schema planewise/bundle-verification/1."""
        return {
            "schema": VERIFICATION_SCHEMA,
            "bundle_schema": BUNDLE_SCHEMA,
            "run_id": self.run_id,
            "manifest_path": MANIFEST,
            "manifest_sha256": self.manifest_sha256,
            "files_verified": self.files_verified,
            "bytes_verified": self.bytes_verified,
        }


def verify_bundle(path: str | Path) -> Receipt:
    """Check that a bundle is exactly what its manifest says, in the order of protocol 9.2.

    Raises :class:`VerificationFailed` for the first rule that does not hold.
    """
    root = Path(path)
    if not root.is_dir():
        raise _failed(root, "not a folder")
    manifest, digest = read_manifest(root)
    declared = _declared(root, manifest)
    _match_tree(root, declared)
    for name in sorted(declared):
        _match_file(root, declared[name])
    total = sum(file.bytes for file in declared.values())
    if total > INT64_MAX:
        raise _failed(root, f"the declared sizes add up to {total} bytes, more than 2^63-1")
    return Receipt(manifest.run_id, digest, len(declared), total)


def second_pass(path: str | Path, receipt: Receipt, consumed: Iterable[str]) -> None:
    """Check after reading that the bundle did not change meanwhile: its manifest and the files that were read (9.2).

    Raises :class:`VerificationFailed` when one did.
    """
    root = Path(path)
    manifest, digest = read_manifest(root)
    if (digest, manifest.run_id) != (receipt.manifest_sha256, receipt.run_id):
        raise _failed(root, "the manifest changed while the bundle was read")
    declared = {file.path: file for file in manifest.files}
    for name in consumed:
        if name not in declared:
            raise _failed(root, f"{name!r} was read and is not declared")
        _match_file(root, declared[name])


def verify_semantic(path: str | Path) -> Receipt:
    """Verify deeply, rebuild evidence and report from the bundle's planes, and require both to be the published ones.

    Evidence is equal when it is equal as JSON values, the report when it is equal byte for byte; nothing is ignored.
    It covers what is derived from the planes. That the planes say what the source said it does not check, nor what
    the attachments hold beyond their digests.

    Raises :class:`VerificationFailed` as :func:`verify_bundle` does, and :class:`CheckFailed` when something differs
    or was made by other views.
    """
    from .load import rebuild_packet  # Loads DuckDB, which plain verification does without.
    from .report import render_report

    root = Path(path)
    receipt = verify_bundle(root)
    published = _read_evidence(root)
    report = _read(root, "report.md")
    rebuilt = rebuild_packet(root)
    second_pass(root, receipt, [file.path for file in read_manifest(root)[0].files if _is_derived(file.path)])
    made_by, these = published.get("views_digest"), rebuilt.get("views_digest")
    if made_by != these:
        raise CheckFailed(
            f"the evidence was made by other views ({made_by}; these are {these})",
            source=root,
            code="other_views",
            remedy="verify it with the planewise that published it",
        )
    rebuilt_id = rebuilt["provenance"]["run_id"]
    if rebuilt_id != receipt.run_id:
        raise CheckFailed(f"the planes hold run {rebuilt_id!r}, the manifest names {receipt.run_id!r}", source=root)
    different = [key for key in sorted(published.keys() | rebuilt.keys()) if not _equal(published, rebuilt, key)]
    if different:
        raise CheckFailed(
            f"the evidence rebuilt from the planes differs in {', '.join(different)}",
            source=root,
            code="evidence_differs",
        )
    if report != render_report(rebuilt).encode():
        raise CheckFailed("report.md is not the report of the evidence", source=root, code="report_differs")
    return receipt


def _failed(root: Path, message: str, code: str | None = None) -> VerificationFailed:
    return VerificationFailed(message, source=root, code=code)


def _declared(root: Path, manifest: Manifest) -> dict[str, DeclaredFile]:
    declared: dict[str, DeclaredFile] = {}
    for file in manifest.files:
        if not is_safe_path(file.path) or file.path == MANIFEST:
            raise _failed(root, f"the manifest declares {file.path!r}, which is no safe relative path")
        if file.path in declared:
            raise _failed(root, f"the manifest declares {file.path!r} twice")
        if not _SHA256.fullmatch(file.sha256):
            raise _failed(root, f"the sha256 of {file.path!r} is not 64 hex digits")
        declared[file.path] = file
    return declared


def _match_tree(root: Path, declared: dict[str, DeclaredFile]) -> None:
    """Rules 6 to 8: first nothing but folders and regular files, then none too many, then none too few."""
    observed = []
    try:
        for path, entry in walk(root):
            if not entry.is_file(follow_symlinks=False):
                raise _failed(root, f"{path!r} is a link or a special file")
            observed.append(path)
    except OSError as error:
        raise _failed(root, f"the folder cannot be read: {error}") from error
    for path in observed:
        if path not in declared and path != MANIFEST:
            raise _failed(root, f"{path!r} is not declared", "undeclared_file")
    missing = sorted(declared.keys() - set(observed))
    if missing:
        raise _failed(root, f"{missing[0]!r} is declared and missing", "missing_file")


def _match_file(root: Path, declared: DeclaredFile) -> None:
    try:
        size, digest = size_and_sha256(root / declared.path)
    except OSError as error:
        raise _failed(root, f"{declared.path!r} cannot be read as a regular file: {error.strerror}") from error
    if size != declared.bytes:
        raise _failed(root, f"{declared.path!r} has {size} bytes, declared are {declared.bytes}", "size_mismatch")
    if digest != declared.sha256.lower():
        raise _failed(root, f"{declared.path!r} has another sha256 than declared", "hash_mismatch")


def _is_derived(path: str) -> bool:
    return path in ("evidence.json", "report.md") or path.startswith("planes/")


def _read(root: Path, name: str) -> bytes:
    try:
        return (root / name).read_bytes()
    except OSError as error:
        raise CheckFailed(f"{name} cannot be read: {error.strerror}", source=root, code="no_evidence") from error


def _read_evidence(root: Path) -> dict[str, Any]:
    try:
        value = json.loads(_read(root, "evidence.json"))
    except (ValueError, RecursionError) as error:
        raise CheckFailed(f"evidence.json cannot be read: {error}", source=root, code="no_evidence") from error
    if not isinstance(value, dict):
        raise CheckFailed("evidence.json is no JSON object", source=root, code="no_evidence")
    return value


def _equal(left: dict[str, Any], right: dict[str, Any], key: str) -> bool:
    if (key in left) != (key in right):
        return False
    # As text, because Python holds 1, 1.0 and True for equal.
    return json.dumps(left[key], sort_keys=True) == json.dumps(right[key], sort_keys=True)
