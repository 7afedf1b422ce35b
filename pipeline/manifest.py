"""The manifest of a bundle: what it declares, which paths it may declare, how it is written and read (protocol 9.1)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..recorder.errors import InputRefused, VerificationFailed
from .fsio import open_regular, remove_temporaries, walk, write_atomic
from .run_folder import is_regular

BUNDLE_SCHEMA = "planewise/bundle/1"
"""Format that bundle.json names."""
MANIFEST = "bundle.json"
"""File name of the manifest; it never lists itself."""
INT64_MAX = 2**63 - 1

_BLOCK = 1 << 20


class DeclaredFile(msgspec.Struct, frozen=True):
    """One file of a manifest: its path inside the bundle, its size in bytes, 64 hex digits over its content."""

    path: str
    bytes: Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What bundle.json says."""

    schema: str
    run_id: str
    files: list[DeclaredFile]


def write_manifest(folder: Path, run_id: str) -> None:
    """Declare every file under ``folder`` in its bundle.json, replacing one that a killed publication left.

    Raises :class:`InputRefused` for a link, a special file, or a name that no manifest can hold.
    """
    remove_temporaries(folder)
    files = []
    for path, entry in walk(folder):
        if path == MANIFEST:
            continue
        if not entry.is_file(follow_symlinks=False) or not is_safe_path(path):
            raise InputRefused(
                f"{path!r} is a link, a special file or no portable name", source=folder, code="bad_file"
            )
        size, digest = size_and_sha256(folder / path)
        files.append({"path": path, "bytes": size, "sha256": digest})
    document = {"schema": BUNDLE_SCHEMA, "run_id": run_id, "files": sorted(files, key=lambda file: str(file["path"]))}
    write_atomic(folder / MANIFEST, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


def read_manifest(root: Path) -> tuple[Manifest, str]:
    """The manifest of a bundle and the sha256 of its bytes; :class:`VerificationFailed` when it cannot be read."""
    path = root / MANIFEST
    if not is_regular(path):
        raise VerificationFailed("no bundle.json that is a regular file", source=root)
    try:
        with open_regular(path) as stream:
            content = stream.readall()
        value = json.loads(content, object_pairs_hook=_no_repeats)
        found = value.get("schema") if isinstance(value, dict) else None
        if found != BUNDLE_SCHEMA:
            raise VerificationFailed(
                f"bundle.json has schema {found!r}; this planewise knows {BUNDLE_SCHEMA}", source=root
            )
        return msgspec.convert(value, Manifest), hashlib.sha256(content).hexdigest()
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise VerificationFailed(f"bundle.json cannot be read: {error}", source=root) from error


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object names one key twice")
    return value


def is_safe_path(path: str) -> bool:
    """True for a relative ``/`` path of ordinary components; a component ``.``, ``..`` or empty is refused anywhere."""
    parts = path.split("/")
    return "\\" not in path and "\0" not in path and not any(part in ("", ".", "..") for part in parts) and _utf8(path)


def _utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def size_and_sha256(path: Path) -> tuple[int, str]:
    """Size in bytes and sha256 of a regular file, no link followed; raises ``OSError``."""
    digest, size = hashlib.sha256(), 0
    with open_regular(path) as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()
