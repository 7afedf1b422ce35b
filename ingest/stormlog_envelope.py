"""The run envelope of stormlog: which sessions and attachments a run has (correlation capture, part 3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from ..recorder.errors import InputRefused

ENVELOPE = "stormlog_run.json"
LARGEST = 1 << 26


class _Session(msgspec.Struct, forbid_unknown_fields=True):
    session_id: str
    metadata: dict[str, Any]
    job_id: str | None = None
    role: str | None = None
    source_namespace: str | None = None
    source_ref: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None


class _Attachment(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    kind: str
    storage: str
    metadata: dict[str, Any]
    url: str | None = None
    path: str | None = None
    attachment_id: str | None = None
    run_id: str | None = None
    session_id: str | None = None
    job_id: str | None = None
    source_namespace: str | None = None
    source_ref: str | None = None
    created_at_utc: str | None = None
    updated_at_utc: str | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    start_ns: int | None = None
    end_ns: int | None = None


class Envelope(msgspec.Struct, forbid_unknown_fields=True):
    """An envelope, checked for its members and their types."""

    schema_version: int
    format: str
    run_id: str
    metadata: dict[str, Any]
    title: str | None = None
    description: str | None = None
    job_id: str | None = None
    source_namespace: str | None = None
    source_ref: str | None = None
    created_at_utc: str | None = None
    updated_at_utc: str | None = None
    started_at_ns: int | None = None
    ended_at_ns: int | None = None
    tags: list[str] = []
    sessions: list[_Session] = []
    attachments: list[_Attachment] = []


def read_envelope(folder: Path) -> tuple[Envelope, list[tuple[str, str, dict[str, Any]]]]:
    """The envelope in a folder, and its rows as (event type, id, members); raises :class:`InputRefused`."""
    path = folder / ENVELOPE
    try:
        if path.stat().st_size > LARGEST:
            raise InputRefused(f"is larger than {LARGEST} bytes", source=path, code="bad_envelope")
        content = path.read_bytes()
        found = msgspec.json.decode(content, type=Envelope)
        whole = json.loads(content)
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputRefused(f"is no run envelope: {str(error)[:160]}", source=path, code="bad_envelope") from None
    if (found.format, found.schema_version) != ("stormlog.run_envelope", 1) or not found.run_id:
        message = f"is {found.format[:40]!r} of version {found.schema_version}, expected stormlog.run_envelope of 1"
        raise InputRefused(message, source=path, code="bad_envelope")
    rest = {name: value for name, value in whole.items() if name not in ("sessions", "attachments") and value}
    rows = [("envelope.run", found.run_id, rest)]
    rows += [("envelope.session", row["session_id"], row) for row in whole.get("sessions", [])]
    for number, row in enumerate(whole.get("attachments", [])):
        rows.append(("envelope.attachment", row.get("attachment_id") or f"attachment-{number}", row))
    return found, rows


def artifacts_of(folder: Path, envelope: Envelope) -> list[Path]:
    """The inference artifacts that the envelope lists and that lie in its folder; raises :class:`InputRefused`."""
    root, found = folder.resolve(), []
    for row in envelope.attachments:
        if row.kind != "inference_jsonl" or row.path is None:
            continue
        path = (root / row.path).resolve()
        if path.is_relative_to(root) and path.is_file() and path not in found:
            found.append(path)
    if not found:
        raise InputRefused(
            "lists no inference artifact that lies in its folder",
            source=folder / ENVELOPE,
            code="no_artifact",
            remedy="give the artifact itself, a file of JSON Lines",
        )
    return found
