"""Writes whole files so that a reader, or a crash, never meets half of one."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TEMPORARY_SUFFIX = ".tmp"
"""Ends the name of a file that is still being written; readers ignore such files."""


def write_bytes(path: Path, content: Any) -> None:
    """Write under a temporary name, fsync, rename to ``path``, fsync the folder. Raises ``OSError``.

    The descriptor is written without a userland buffer, so a forked child has nothing of it to flush.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        _write_all(descriptor, memoryview(content))
        os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        _discard(temporary)
        raise
    try:
        os.close(descriptor)
        os.rename(temporary, path)
    except OSError:
        _discard(temporary)
        raise
    sync_folder(path.parent)


def write_json(path: Path, document: Mapping[str, Any]) -> str:
    """Write a JSON document as :func:`write_bytes` does; the sha256 of what was written."""
    content = (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()
    write_bytes(path, content)
    return hashlib.sha256(content).hexdigest()


def sync_folder(folder: Path) -> None:
    """Make the folder's entries durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, rest: memoryview) -> None:
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _discard(path: Path) -> None:
    with contextlib.suppress(OSError):  # The write already failed; its own error is the one to raise.
        path.unlink()
