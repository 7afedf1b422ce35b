"""Appends captures to an inference artifact: one part a call, incremental, locked, whole or not at all.

An artifact is a folder of Parquet parts with the rows of planes (docs/infer.md). The order of work is that of the
correlation capture, part 1.2: everything is collected and checked before anything is written. What links an activity
to an iteration is judged in SQL over all parts together, so that captures may come in any order.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..recorder.errors import Conflict, ContractError, UsageError
from ..recorder.infer_base import CorrelationContext
from ..recorder.infer_capture import (
    AbsentComponent,
    EngineAdapter,
    EngineCapture,
    SessionSummary,
    TraceCapture,
    TraceCollector,
)
from ..recorder.infer_events import CapabilityEvent
from .infer_attachments import attachment_row
from .infer_capabilities import capabilities
from .infer_columns import Columns
from .infer_conflicts import fresh_rows
from .infer_index import INDEX, Index, create_index, held
from .infer_parts import write_part


@dataclass(frozen=True)
class AppendReceipt:
    """What an append did: ``status`` appended or unchanged (all of it was there before), the part, its new rows."""

    status: str
    part: int
    activities: int = 0
    events: int = 0


def create_inference_artifact(path: str | Path, *, run_id: str) -> Path:
    """Make a new, empty artifact for one run at ``path``, and give its path.

    Raises :class:`UsageError` for an empty run id and :class:`Conflict` when something is there already.
    """
    if not run_id:
        raise UsageError("the run id is empty")
    folder = Path(path)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise Conflict("something is there already", source=folder, remedy="append to it, or choose another") from None
    for name in ("parts", "index", "attachments"):
        (folder / name).mkdir()
    create_index(folder, run_id)
    return folder


def append_inference_capture(
    artifact_path: str | Path,
    *,
    run_id: str,
    session: SessionSummary,
    engine_adapter: EngineAdapter | AbsentComponent | None = None,
    trace_collector: TraceCollector | AbsentComponent | None = None,
) -> AppendReceipt:
    """Append what an adapter and a collector give, with one capability record for each, and register the traces.

    Either may be absent: None is ``not_requested``, an :class:`AbsentComponent` says its own reason. An append that
    adds nothing new changes nothing. Facts that were there before are not written again.

    Raises :class:`ContractError` (a ``ValueError``) for what breaks a rule, :class:`Conflict` when an event or an
    entity is there with other content, :class:`UsageError` when the path is no artifact, ``OSError``, and what
    ``collect`` raises; the artifact is as it was then.
    """
    folder = Path(artifact_path)
    if not (folder / INDEX).is_file():
        with held(folder):
            pass  # Refuses what is no artifact before anything is collected.
    if not run_id:
        raise ContractError("the run id is empty", code="inference_event")
    engine = _collected(engine_adapter, run_id, session)
    trace = _collected(trace_collector, run_id, session)
    columns = _columns(engine, trace, run_id, session)
    with held(folder) as index:
        return _append(folder, index, columns, engine, trace, run_id, session)


def _collected(component: Any, run_id: str, session: SessionSummary) -> Any:
    if component is None:
        return AbsentComponent("not_requested")
    if isinstance(component, AbsentComponent):
        return component
    return component.collect(run_id=run_id, session_id=session.session_id)


def _columns(engine: Any, trace: Any, run_id: str, session: SessionSummary) -> Columns:
    def check(context: CorrelationContext) -> None:
        for name, found, given in (
            ("run_id", context.run_id, run_id),
            ("session_id", context.session_id, session.session_id),
        ):
            if found != given:
                raise ContractError(f"an event has {name} {found!r:.80}, expected {given!r:.80}", code="other_run")

    columns = Columns(check)
    for capture, kind, origin in ((engine, EngineCapture, "engine"), (trace, TraceCapture, "trace")):
        if isinstance(capture, kind):
            columns.add(capture.events, origin)
        elif not isinstance(capture, AbsentComponent):
            raise ContractError(f"collect gave a {type(capture).__name__}, expected {kind.__name__}", code="no_capture")
    return columns


def _append(
    folder: Path, index: Index, columns: Columns, engine: Any, trace: Any, run_id: str, session: SessionSummary
) -> AppendReceipt:
    _check_place(index, folder, run_id, session)
    said = capabilities(engine, trace, run_id, session)
    copies: dict[str, Path] = {}
    rows = [_session_row(session)]
    if isinstance(trace, TraceCapture):
        rows += [attachment_row(item, folder, session.session_id, copies) for item in trace.attachments]
    digest = _digest(columns, said, rows)
    if (number := index.part_of(digest)) is not None:
        return AppendReceipt("unchanged", number)
    fresh = _add_to_envelope(index, rows)
    for missing in sorted(id_ for id_ in columns.attachment_ids if index.envelope_row(f"attachment:{id_}") is None):
        raise ContractError(
            f"an activity names the attachment {missing!r:.80}, which is not registered", code="attachment"
        )
    number, first = index.next()
    activities, events = fresh_rows(index, number, columns)
    columns_of_capabilities = Columns(lambda context: None)
    columns_of_capabilities.add(said, None)
    columns.contexts |= columns_of_capabilities.contexts
    defined = {id_: columns.contexts[id_] for id_ in index.unknown_contexts(sorted(columns.contexts))}
    tables = [*events, *columns_of_capabilities.events.tables]
    try:
        last, written = write_part(folder, number, first, run_id, activities, tables, defined, fresh, copies)
        index.add_part(number, digest, last)
    except BaseException:
        shutil.rmtree(folder / "parts" / f"{number:08}", ignore_errors=True)
        raise
    return AppendReceipt("appended", number, sum(table.num_rows for table in activities), written)


def _check_place(index: Index, folder: Path, run_id: str, session: SessionSummary) -> None:
    if index.run_id != run_id:
        message = f"belongs to the run {index.run_id!r:.80}, and {run_id!r:.80} was given"
        raise ContractError(message, source=folder, code="other_run")
    if index.session_id is None:
        index.set_session(session.session_id)
    elif index.session_id != session.session_id:
        message = f"belongs to the session {index.session_id!r:.80}, and {session.session_id!r:.80} was given"
        raise ContractError(message, source=folder, code="other_session", remedy="make one artifact for each session")


def _session_row(session: SessionSummary) -> dict[str, Any]:
    names = ("session_id", "job_id", "rank", "local_rank", "world_size")
    return {name: getattr(session, name) for name in names} | {"role": "inference_capture", "metadata": {}}


def _add_to_envelope(index: Index, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are new; a session once registered is never changed, an attachment may not differ."""
    fresh = []
    for row in rows:
        kind = "attachment" if "attachment_id" in row else "session"
        id_ = f"{kind}:{row[f'{kind}_id']}"
        known = index.envelope_row(id_)
        if known is None:
            index.add_envelope_row(id_, row)
            fresh.append(row)
        elif kind == "attachment" and known != row:
            changed = sorted(name for name in {*known, *row} if known.get(name) != row.get(name))
            raise Conflict(f"attachment {row['attachment_id']!r:.80} is registered with another {', '.join(changed)}")
    return fresh


def _digest(columns: Columns, said: list[CapabilityEvent], rows: list[dict[str, Any]]) -> str:
    """The digest of an append: all that it says, in order, without the ids that are made up here."""
    content = hashlib.sha256()
    for gathered in (columns.activities, columns.events):
        for keys, facts in zip(gathered.event_keys, gathered.facts, strict=True):
            content.update(np.stack([keys, facts]).tobytes())
        content.update(b"|")
    records = [replace(event, event_id=event.component).to_record() for event in said]
    try:
        content.update(json.dumps([records, rows], sort_keys=True, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise ContractError(
            f"a summary or the metadata of an attachment is no JSON: {error}", code="not_json"
        ) from None
    return content.hexdigest()
