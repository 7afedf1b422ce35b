"""Writes the inference events of a run as stormlog's own files: JSON Lines of version 4, and the run envelope.

What planewise knows beyond that format goes where it has room: links that were found by ids are linked records, size
and sha256 of a trace lie in the metadata of its attachment (correlation capture, parts 2.3 and 3).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, fields
from heapq import merge
from pathlib import Path
from typing import Any

import duckdb

from ..recorder.errors import Conflict, InputRefused
from ..recorder.infer_activity import ActivityReferenceEvent
from ..recorder.infer_base import CorrelationContext, CorrelationEvent, entity_of
from ..recorder.infer_events import (
    ArtifactIdentityEvent,
    CapabilityEvent,
    ClockAlignmentEvent,
    IterationEvent,
    MembershipEvent,
    RequestEvent,
    StageEvent,
)
from .fsio import copy_regular, sync_file, sync_folder, temporary_sibling

ARTIFACT = "run.jsonl"
ENVELOPE = "stormlog_run.json"
_KINDS: tuple[type[CorrelationEvent], ...] = (
    *(ArtifactIdentityEvent, RequestEvent, IterationEvent, StageEvent, MembershipEvent),
    *(CapabilityEvent, ClockAlignmentEvent),
)
_FIELDS = {kind.event_type: [field.name for field in fields(kind)] for kind in _KINDS}
_ACTIVITY = [field.name for field in fields(ActivityReferenceEvent)]
_SESSION_NAMES = {"session_id", "metadata", "job_id", "role", "rank", "local_rank", "world_size"}
_EVENTS = "SELECT * FROM engine_events WHERE run_id = ? ORDER BY seq"
_ACTIVITIES = """
SELECT own.*, links.iteration_id AS found FROM activities AS own JOIN activity_links AS links USING (run_id, seq)
WHERE run_id = ? ORDER BY seq
"""


@dataclass(frozen=True)
class Exported:
    """What was written: the folder, records of the artifact, links among them that planewise found, attachments."""

    folder: Path
    records: int
    linked: int
    attachments: int


def export_stormlog(con: duckdb.DuckDBPyConnection, run_id: str, output: Path, files: Path) -> Exported:
    """Write the run into the new folder ``output``; traces that were copied into ``files`` come along.

    Raises :class:`InputRefused` for a run without inference events, :class:`Conflict` when ``output`` exists,
    ``OSError``; then nothing is at ``output``.
    """
    events = con.execute("SELECT count(*) FROM engine_events WHERE run_id = ?", [run_id]).fetchone()
    if not events or not events[0]:
        raise InputRefused(f"the run {run_id!r:.80} has no events of an inference engine", code="no_events")
    if output.exists() or output.is_symlink():
        raise Conflict("something is there already", source=output, remedy="choose another folder")
    temporary = temporary_sibling(output)
    temporary.mkdir(parents=True)
    try:
        exported = _Export(con, run_id).write(temporary, files)
        os.rename(temporary, output)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(output.parent)
    return Exported(output, *exported)


class _Export:
    def __init__(self, con: duckdb.DuckDBPyConnection, run_id: str) -> None:
        self._con = con
        self._run_id = run_id
        self._contexts: dict[str, dict[str, Any]] = {}
        self._envelope: dict[str, list[dict[str, Any]]] = {"run": [], "session": [], "attachment": []}
        self._own_run: str | None = None
        self._linked = 0

    def write(self, folder: Path, files: Path) -> tuple[int, int, int]:
        records = 0
        rows = merge(self._rows(_EVENTS), self._rows(_ACTIVITIES), key=lambda row: row["seq"])
        with open(folder / ARTIFACT, "x", encoding="utf-8", newline="\n") as stream:
            for row in rows:
                record = self._activity(row) if "activity_id" in row else self._event(row)
                if record is not None:
                    stream.write(json.dumps(record, sort_keys=True) + "\n")
                    records += 1
        envelope = self._envelope_document()
        text = json.dumps(envelope, indent=2, sort_keys=True) + "\n"
        (folder / ENVELOPE).write_text(text, encoding="utf-8", newline="\n")
        self._copy(envelope, folder, files)
        sync_file(folder / ARTIFACT)
        sync_file(folder / ENVELOPE)
        sync_folder(folder)
        return records, self._linked, len(envelope["attachments"])

    def _rows(self, query: str) -> Iterator[dict[str, Any]]:
        found = self._con.cursor().execute(query, [self._run_id])
        names = [column[0] for column in found.description]
        while block := found.fetchmany(10_000):
            for values in block:
                yield dict(zip(names, values, strict=True))

    def _event(self, row: dict[str, Any]) -> dict[str, Any] | None:
        kind, rest = row["event_type"], json.loads(row["attributes"] or "{}")
        if kind == "infer.context":
            self._define(rest["context_id"], rest["context"])
            return {"schema_version": 4, "event_type": kind, **rest}
        if kind.startswith("envelope."):
            self._envelope[kind.removeprefix("envelope.")].append(rest)
            return None
        if kind.endswith(" (legacy)"):
            return {"event_type": kind.removesuffix(" (legacy)"), **rest}
        placed = {
            "event_id": row["event_id"],
            "request_ref": _ref(row["request_id"]),
            "iteration_ref": _ref(row["iteration_id"]),
            "start_ns": row["start_ns"],
            "end_ns": _end(row, rest),
        }
        values = {name: placed[name] if name in placed else rest.get(name) for name in _FIELDS[kind]}
        return self._with_context(kind, values, rest.get("context_id"), rest.get("context"))

    def _activity(self, row: dict[str, Any]) -> dict[str, Any]:
        rest = json.loads(row["attributes"] or "{}")
        metadata = rest.get("metadata", {})
        if row["interval_offsets"] is not None:
            pairs = zip(row["interval_offsets"], row["interval_durations"], strict=True)
            metadata["intervals"] = [list(pair) for pair in pairs]
        self._linked += row["iteration_id"] is None and row["found"] is not None
        values = {
            "event_id": row["event_id"],
            "metadata": metadata,
            "activity_ref": _ref(row["activity_id"]),
            "activity_kind": row["kind"],
            "activity_domain": row["domain"],
            "iteration_ref": _ref(row["found"]),
            "attribution_status": "unresolved" if row["found"] is None else "linked",
            "correlation_scope": _ref(row["scope"]),
            "trace_attachment_id": row["attachment_id"],
            "start_ns": row["start_ns"],
            "end_ns": _end(row, rest),
        }
        for name in ("runtime_correlation_id", "cuda_correlation_id", "stream_id", "graph_id"):
            values[name] = None if row[name] is None else int(row[name])
        values = {name: values.get(name) for name in _ACTIVITY}
        return self._with_context("infer.activity_ref", values, row["context_id"], rest.get("context"))

    def _with_context(
        self, kind: str, values: dict[str, Any], id_: str | None, own: dict[str, Any] | None
    ) -> dict[str, Any]:
        """The record with its context: named by version 4, in the record for what version 4 cannot say."""
        metadata = values["metadata"] = values["metadata"] or {}
        del values["context"]
        if own is None and not ("intervals" in metadata and metadata["intervals"] is None):
            return {"schema_version": 4, "event_type": kind, "context_id": id_, **values}
        context = own if own is not None else self._contexts[str(id_)]
        self._own_run = self._own_run or context["run_id"]
        version = 3 if "intervals" in metadata else 2
        names = [field.name for field in fields(CorrelationContext)]
        whole = {name: context.get(name) for name in names}
        return {"schema_version": version, "event_type": kind, "context": whole, **values}

    def _define(self, id_: str, context: dict[str, Any]) -> None:
        self._contexts[id_] = context
        self._own_run = self._own_run or context["run_id"]

    def _envelope_document(self) -> dict[str, Any]:
        own = self._envelope["run"][0] if self._envelope["run"] else {}
        run_id = own.get("run_id") or self._own_run or self._run_id
        document = {"format": "stormlog.run_envelope", "schema_version": 1, "metadata": {}, **own, "run_id": run_id}
        sessions = [{name: row[name] for name in row if name in _SESSION_NAMES} for row in self._envelope["session"]]
        attachments = [_attachment(row) for row in self._envelope["attachment"] if row.get("kind") != "inference_jsonl"]
        session = sessions[0]["session_id"] if sessions else None
        return document | {"sessions": sessions, "attachments": [_artifact_row(session), *attachments]}

    def _copy(self, envelope: dict[str, Any], folder: Path, files: Path) -> None:
        for row in envelope["attachments"]:
            if row["storage"] == "copy" and row.get("path", "").startswith("attachments/"):
                target = folder / row["path"]
                target.parent.mkdir(exist_ok=True)
                copy_regular(files / row["path"], target)


def _attachment(row: dict[str, Any]) -> dict[str, Any]:
    measured = {name: row[name] for name in ("bytes", "sha256") if name in row}
    kept = {name: value for name, value in row.items() if name not in measured}
    return {**kept, "metadata": {**row["metadata"], **measured}}


def _artifact_row(session: str | None) -> dict[str, Any]:
    row = {
        "attachment_id": f"infer-jsonl:{session or 'none'}:{ARTIFACT}",
        "title": "Inference JSONL",
        "kind": "inference_jsonl",
        "storage": "reference",
        "path": ARTIFACT,
        "metadata": {"format": "jsonl"},
    }
    return row if session is None else {**row, "session_id": session}


def _ref(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    ref = entity_of(text)
    return {"producer_id": ref.producer_id, "id": ref.id}


def _end(row: dict[str, Any], rest: dict[str, Any]) -> int | None:
    if row["duration_ns"] is not None:
        return int(row["start_ns"] + row["duration_ns"])
    return rest.get("end_ns")
