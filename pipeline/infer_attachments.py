"""Raw traces of an inference artifact: confined to the folder of the run, measured, and copied when asked."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..recorder.errors import ContractError
from ..recorder.infer_capture import TraceAttachment
from .fsio import open_regular

SCHEMES = ("http", "https", "s3", "file")
_BLOCK = 1 << 20


def attachment_row(
    attachment: TraceAttachment, artifact: Path, session_id: str, copies: dict[str, Path]
) -> dict[str, Any]:
    """The envelope row of an attachment; a file has its ``bytes`` and ``sha256`` in it.

    Relative paths begin in the folder of the run, which is the one around the artifact, and none may leave it, by
    ``..`` or by a link. A file to copy is noted in ``copies``, under its path in the artifact. Raises
    :class:`ContractError`.
    """
    row: dict[str, Any] = {
        "attachment_id": attachment.attachment_id,
        "title": attachment.title,
        "kind": "profiler_trace",
        "storage": attachment.storage,
        "session_id": session_id,
        "metadata": dict(attachment.metadata or {}),
    }
    if attachment.url is not None:
        return {**row, "url": _checked_url(attachment)}
    root = artifact.resolve().parent
    path = _confined(attachment, root)
    size, digest = _measured(attachment, path)
    if attachment.storage == "reference":
        return {**row, "path": path.relative_to(root).as_posix(), "bytes": size, "sha256": digest}
    name = f"attachments/{digest[:16]}-{re.sub(r'[^A-Za-z0-9._-]+', '_', path.name)[-80:].lstrip('.')}"
    copies[name] = path
    return {**row, "path": name, "bytes": size, "sha256": digest}


def copy_measured(source: Path, target: Path, size: int, digest: str) -> None:
    """Copy a file, durable, and check that it is what was measured. Raises :class:`ContractError`, ``OSError``."""
    content = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_regular(source) as reader, open(target, "wb") as writer:
        while block := reader.read(_BLOCK):
            content.update(block)
            writer.write(block)
        writer.flush()
        os.fsync(writer.fileno())
        copied = writer.tell()
    if (copied, content.hexdigest()) != (size, digest):
        raise ContractError("changed while it was copied", source=source, code="attachment_changed")


def _checked_url(attachment: TraceAttachment) -> str:
    url = str(attachment.url)
    scheme = urlsplit(url).scheme
    if scheme not in SCHEMES:
        raise _refused(attachment, f"has a url of scheme {scheme!r:.20}, expected one of {', '.join(SCHEMES)}")
    return url


def _confined(attachment: TraceAttachment, root: Path) -> Path:
    given = attachment.path
    if not isinstance(given, str | os.PathLike):
        raise _refused(attachment, f"has the path {given!r:.80}, expected a Path")
    if ".." in Path(given).parts:
        raise _refused(attachment, f"has '..' in its path {str(given)!r:.80}")
    path = (root / given).resolve()
    if not path.is_relative_to(root):
        raise _refused(attachment, f"lies outside the folder of the run, at {str(path)!r:.120}")
    return path


def _measured(attachment: TraceAttachment, path: Path) -> tuple[int, str]:
    try:
        with open_regular(path) as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return os.fstat(stream.fileno()).st_size, digest
    except OSError as error:
        raise _refused(attachment, f"cannot be read: {error.strerror}") from error


def _refused(attachment: TraceAttachment, message: str) -> ContractError:
    return ContractError(f"attachment {attachment.attachment_id!r:.80} {message}", code="attachment")
