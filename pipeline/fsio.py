"""Atomic files and folders: whatever a reader or a crash meets is the old content or the new, never half of it."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..recorder.files import sync_folder

__all__ = [
    "copy_regular",
    "is_temporary",
    "open_regular",
    "remove_temporaries",
    "sync_file",
    "sync_folder",
    "sync_tree",
    "temporary_sibling",
    "walk",
    "write_atomic",
]

_TEMPORARY = re.compile(r"\..+\.tmp-[0-9a-f]+-[0-9a-f]+", re.DOTALL)
_BLOCK = 1 << 20


def temporary_sibling(path: Path) -> Path:
    """A fresh hidden name beside ``path``, recognised by :func:`is_temporary`. Long names are cut to stay legal."""
    return path.with_name(f".{path.name[:100]}.tmp-{os.getpid():x}-{secrets.token_hex(6)}")


def is_temporary(name: str) -> bool:
    """True for a name made by :func:`temporary_sibling`."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_temporaries(folder: Path) -> None:
    """Remove the half-written files that killed writers left directly in ``folder``."""
    for entry in os.scandir(folder):
        if is_temporary(entry.name) and entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)


def write_atomic(path: Path, content: bytes) -> None:
    """Write under a temporary name, fsync, rename onto ``path``, fsync the folder.

    Raises ``OSError``; then ``path`` is as it was and nothing is left beside it.
    """
    temporary = temporary_sibling(path)
    try:
        with open(temporary, "xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def open_regular(path: Path) -> Any:
    """Open a regular file for reading, never through a link as its last component.

    Returns an unbuffered binary stream. Raises ``OSError``: ``ELOOP`` for a link, ``EINVAL`` for a special file.
    """
    # O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(22, "not a regular file", str(path))
        return os.fdopen(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def copy_regular(source: Path, target: Path) -> None:
    """Copy the bytes of a regular file (no link) to a new file and fsync it. Raises ``OSError``."""
    with open_regular(source) as reader, open(target, "xb") as writer:
        while block := reader.read(_BLOCK):
            writer.write(block)
        writer.flush()
        os.fsync(writer.fileno())


def walk(root: Path, inside: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry under ``root`` that is no folder, as (path with ``/``, entry): sorted by name, links not followed."""
    with os.scandir(root / inside) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        path = f"{inside}/{entry.name}" if inside else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from walk(root, path)
        else:
            yield path, entry


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(root: Path) -> None:
    """Make every file and every folder under ``root``, and ``root`` itself, durable."""
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            sync_file(Path(folder, name))
        sync_folder(Path(folder))
