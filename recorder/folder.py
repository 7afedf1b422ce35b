"""The capture folder around its shards: claim and header, attachments, terminal record."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from .errors import Conflict, ContractError, RecordingError
from .families import ATTACHMENT_FOLDER, CAPTURE_FORMAT, HEADER_NAME, TERMINAL_NAME
from .files import TEMPORARY_SUFFIX, sync_folder, write_json
from .planes import PLANE_VERSION
from .values import filled_text
from .vocabulary import Outcome


def producer() -> str:
    """Program and version that writes the capture."""
    try:
        return f"planewise {version('planewise')}"
    except PackageNotFoundError:
        from .. import __version__

        return f"planewise {__version__}"


def claim_folder(folder: Path, run: Mapping[str, Any]) -> str:
    """Create the folder and write its header, durably; the header's sha256.

    Raises :class:`Conflict` when something is there already, :class:`RecordingError` when it cannot be written.
    """
    header = {"format": CAPTURE_FORMAT, "plane_version": PLANE_VERSION, "producer": producer(), "run": dict(run)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise _taken(folder)
        # Its temporary file is created exclusively: one session claims.
        header_sha256 = write_json(folder / HEADER_NAME, header)
        sync_folder(folder.parent)
    except FileExistsError as fault:
        raise _taken(folder) from fault
    except OSError as fault:
        raise RecordingError(
            f"cannot write the header: {fault}", source=folder, remedy="choose a folder that can be written"
        ) from fault
    return header_sha256


def write_terminal(
    folder: Path,
    outcome: Outcome,
    timestamp_ns: int,
    *,
    reason: str | None,
    rows: Mapping[str, int],
    lost_rows: int,
    header_sha256: str,
) -> None:
    """Write the terminal record; raises :class:`RecordingError` when it cannot be.

    ``header_sha256`` is the digest of the header as it was written, so that an edited one is found out.
    """
    document: dict[str, Any] = {"format": CAPTURE_FORMAT, "outcome": outcome.value, "timestamp_ns": timestamp_ns}
    if reason is not None:
        document["reason"] = reason
    document |= {"rows": dict(rows), "lost_rows": lost_rows, "header_sha256": header_sha256}
    try:
        write_json(folder / TERMINAL_NAME, document)
    except OSError as fault:
        raise RecordingError(f"cannot write the terminal record: {fault}", source=folder) from fault


def add_attachment(folder: Path, source: Path, *, title: str, name: str | None) -> tuple[str, str, int, str]:
    """Copy a file into the capture; (path inside it, title, bytes, sha256)."""
    chosen = filled_text(source.name if name is None else name, "name")
    if chosen in (".", "..") or set(chosen) & set("/\\\0") or chosen.endswith(TEMPORARY_SUFFIX):
        raise ContractError(f"found {chosen!r}, expected a plain file name", position="name", code="attachment_name")
    target = folder / ATTACHMENT_FOLDER / chosen
    if target.exists():
        raise Conflict("the capture already holds it", source=target)
    try:
        size, digest = _copy(source, target)
    except OSError as fault:
        raise RecordingError(f"cannot attach {source}: {fault}", source=folder) from fault
    return f"{ATTACHMENT_FOLDER}/{chosen}", title, size, digest


def _copy(source: Path, target: Path) -> tuple[int, str]:
    target.parent.mkdir(exist_ok=True)
    temporary = target.with_name(target.name + TEMPORARY_SUFFIX)
    shutil.copyfile(source, temporary)
    with temporary.open("rb+") as copied:
        digest = hashlib.file_digest(copied, "sha256").hexdigest()
        size = copied.tell()
        os.fsync(copied.fileno())
    temporary.rename(target)
    sync_folder(target.parent)
    return size, digest


def _taken(folder: Path) -> Conflict:
    return Conflict(
        "exists and is not an empty folder; a capture is never written over",
        source=folder,
        remedy="choose a folder that does not exist yet",
    )
