"""The digest of a source: what was read, by content alone."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

from ..recorder.errors import InputRefused

_BLOCK = 1 << 20
_RESTS_NS = 2_000_000_000
_known: dict[tuple[int, ...], str] = {}


def source_name(path: Path) -> str:
    """The base name of a source as text; bytes of a file name that are no UTF-8 are spelled ``\\xff``."""
    return os.fsencode(path.absolute().name).decode(errors="backslashreplace")


def source_digest(path: str | Path) -> str:
    """``sha256:`` and 64 hex digits over the content of a file, or over names, bytes and sizes of a folder's files.

    The name of the source itself and file times play no part. Of a folder that is still being written, files that
    vanish while it is read are left out and a growing file counts as far as it was read.
    """
    where = Path(path)
    digest = hashlib.sha256()
    try:
        if where.is_file():
            return _file_digest(where)
        if not where.is_dir():
            _add_bytes(digest, where)  # Raises what says why it cannot be read.
        for name, file in sorted((file.relative_to(where).as_posix(), file) for file in where.rglob("*")):
            _add_member(digest, name, file)
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=where, code="unreadable") from error
    return f"sha256:{digest.hexdigest()}"


def _file_digest(file: Path) -> str:
    """The digest of a file; computed once for one that rests, since a stage and its reader both ask for it."""
    state = _state(file)
    if state in _known:
        return _known[state]
    digest = hashlib.sha256()
    begun = time.time_ns()
    _add_bytes(digest, file)
    found = f"sha256:{digest.hexdigest()}"
    if _state(file) == state and begun - max(state[-2:]) > _RESTS_NS:  # A change within a clock tick shows nowhere.
        _known.clear()
        _known[state] = found
    return found


def _state(file: Path) -> tuple[int, ...]:
    stat = file.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _add_member(digest: Any, name: str, file: Path) -> None:
    """Add one file; the length before the name and the size after the bytes keep neighbours apart."""
    if not file.is_file():
        return
    encoded = name.encode("utf-8", "surrogateescape")
    member = hashlib.sha256()
    try:
        size = _add_bytes(member, file)
    except FileNotFoundError:
        return
    digest.update(len(encoded).to_bytes(8, "little") + encoded + size.to_bytes(8, "little") + member.digest())


def _add_bytes(digest: Any, file: Path) -> int:
    size = 0
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return size
