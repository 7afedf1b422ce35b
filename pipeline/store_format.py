"""What makes a folder a store: its format file, its layout, and the paths where none may be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from ..recorder.errors import IncompatibleInput, InputRefused, UsageError
from ..recorder.planes import PLANE_VERSION, PLANES
from .fsio import write_atomic
from .run_folder import is_regular
from .tables import TABLES

STORE_SCHEMA = "planewise/store/1"
"""Format that store.json names."""
EMPTY_RUN = "schema/empty-0000000000000000"
"""Folder in a store with one empty file per plane, named so that the pattern of all runs always matches one file."""

_GLOB_CHARACTERS = frozenset("*?[]\\")
_FOLDERS = ("tmp", "staging", "bundles", "tables", "schema")
_CREATION = (".lock", ".store.json.")


def refuse_path(root: Path) -> None:
    """Raise :class:`UsageError` for a path with wildcards, or inside a published bundle."""
    found = sorted(_GLOB_CHARACTERS & set(str(root)))
    if found:
        raise UsageError(
            f"a store's path may not hold {' '.join(found)}, which file patterns would read as wildcards",
            source=root,
            code="store_path",
            remedy="choose another folder",
        )
    for folder in (root, *root.parents):
        if is_regular(folder / "bundle.json"):
            raise UsageError(
                "a store cannot lie inside a published bundle",
                source=root,
                code="inside_bundle",
                remedy=f"choose a folder outside {folder}",
            )


def create_store(root: Path) -> None:
    """Write store.json first: from then on every other process sees a store, complete or to be completed."""
    for folder in root.parents:
        if is_regular(folder / "store.json"):
            raise UsageError(
                "a store cannot lie inside another store",
                source=root,
                code="inside_store",
                remedy=f"choose a folder outside {folder}, or use that store",
            )
    if root.exists():
        _refuse_foreign(root)
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / ".lock"):
        _refuse_foreign(root)
        if not (root / "store.json").exists():
            write_atomic(root / "store.json", format_document())


def _refuse_foreign(root: Path) -> None:
    if not root.is_dir():
        raise InputRefused("found a file, expected a folder", source=root, code="no_store")
    if (root / "store.json").exists():
        return
    foreign = sorted(entry.name for entry in os.scandir(root) if not entry.name.startswith(_CREATION))
    if foreign:
        raise InputRefused(
            f"the folder is not empty and no store: it holds {foreign[0]!r} and no store.json",
            source=root,
            code="no_store",
            remedy="name an empty or a new folder",
        )


def check_format(root: Path) -> None:
    """Raise :class:`InputRefused` where there is no store, :class:`IncompatibleInput` for another version of one."""
    path = root / "store.json"
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise no_store(root) from None
    check_document(content, path)


def no_store(place: str | Path) -> InputRefused:
    """What is said where there is no store."""
    return InputRefused(
        "no store here (no store.json)", source=place, code="no_store", remedy="planewise ingest makes one"
    )


def check_document(content: bytes, source: str | Path) -> None:
    """Raise as :func:`check_format` for what a store.json says."""
    try:
        found: Any = json.loads(content)
        schema, version = str(found["schema"]), found.get("plane_version")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputRefused(f"cannot be read as a store's format: {error}", source=source, code="no_store") from error
    if (schema, version) != (STORE_SCHEMA, PLANE_VERSION):
        raise IncompatibleInput(
            f"format {schema} with plane version {version}; "
            f"this planewise knows {STORE_SCHEMA} with plane version {PLANE_VERSION}",
            source=source,
            remedy="use the planewise that made it, or ingest the sources into a new store",
        )


def format_document() -> bytes:
    """What the store.json of a new store holds."""
    return (json.dumps({"schema": STORE_SCHEMA, "plane_version": PLANE_VERSION}, indent=1) + "\n").encode()


def complete_layout(root: Path) -> None:
    """Make the folders and the empty file of every plane and table; nothing is written when all are there."""
    for name in _FOLDERS:
        _make_folder(root / name)
    for name, plane in PLANES.items():
        _empty_file(root / EMPTY_RUN / "planes" / f"{name}.parquet", plane.schema)
    for name, table in TABLES.items():
        if name != "bundles":
            _empty_file(root / "tables" / name / "empty.parquet", table.schema)


def _make_folder(path: Path) -> None:
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)


def _empty_file(path: Path, schema: Any) -> None:
    if path.exists():
        return
    _make_folder(path.parent)
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    write_atomic(path, sink.getvalue().to_pybytes())
