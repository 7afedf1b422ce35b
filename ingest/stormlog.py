"""Reader of stormlog inference artifacts: JSON Lines of correlation events, versions 2 to 4, with legacy records.

Facts of the engine go to ``engine_events``, references to GPU and runtime activities to ``activities``. Nothing is
linked here: which iteration an activity belongs to is judged in SQL over the whole artifact. A folder with an envelope
is read with it: the artifacts that it lists are one run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..recorder.errors import InputRefused
from .contract import PlaneBatch
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .plane_rows import PlaneRows
from .source import source_digest, source_name
from .stormlog_envelope import ENVELOPE, artifacts_of, read_envelope
from .stormlog_events import ActivityEvent, Context, Event, Fault, decoded, definition, entity
from .streams import StreamDamaged, chunks, head

LONGEST_LINE = 1 << 24
_HEAD_BYTES = 1 << 16
_LINE = re.compile(rb'\{.*"event_type"\s*:\s*"infer\.')
_EVENT_COLUMNS = "event_type event_id request_id iteration_id clock_id start_ns duration_ns attributes"
_ACTIVITY_COLUMNS = (
    "event_id activity_id kind domain iteration_id scope runtime_correlation_id cuda_correlation_id session_id host"
    " process_id device clock_id clock_kind stream_id graph_id attachment_id start_ns duration_ns interval_offsets"
    " interval_durations unresolved_reason context_id attributes"
)


class StormlogReader:
    """Reads stormlog inference artifacts."""

    name = "stormlog"
    doc = (
        "stormlog inference artifact, JSON Lines of infer.* events, plain or compressed, or its folder with an envelope"
    )

    def detect(self, path: Path) -> bool:
        """True when the first line that is not blank is an object whose ``event_type`` begins with ``infer.``.

        True too for a folder with a run envelope.
        """
        if path.is_dir():
            return (path / ENVELOPE).is_file()
        if not path.is_file():
            return False
        lines = [line for line in head(path, _HEAD_BYTES).splitlines() if line.strip()]
        return bool(lines) and _LINE.match(lines[0].strip()) is not None

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` when the file cannot be read or holds no such event."""
        path = Path(path)
        digest = source_digest(path)
        artifact = _Artifact(path, digest)
        try:
            yield from artifact.batches()
        except OSError as error:
            raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error


class _Artifact:
    """One artifact while it is read."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path = path
        self._files = [path]
        self._envelope: list[tuple[str, str, dict[str, Any]]] = []
        if path.is_dir():
            envelope, self._envelope = read_envelope(path)
            self._files = artifacts_of(path, envelope)
        self._digest = digest
        self._run_id = foreign_run_id(path, digest)
        self._fates = Fates(source_name(path))
        self._events = PlaneRows("engine_events", self._run_id, *_EVENT_COLUMNS.split())
        self._activities = PlaneRows("activities", self._run_id, *_ACTIVITY_COLUMNS.split())
        self._contexts: dict[str, Context] = {}
        self._runs: set[str] = set()
        self._versions: set[int] = set()
        self._seq = 0

    def batches(self) -> Iterator[PlaneBatch]:
        for row in self._envelope:
            self._of_envelope(*row)
        for file in self._files:
            if file != self._path:
                self._fates.enter(file.relative_to(self._path.resolve()).as_posix())
                self._contexts = {}
            for number, line in self._lines(file):
                self._record(number, line)
                self._seq += 1
                yield from self._events.full()
                yield from self._activities.full()
        if not self._versions:
            message = "holds no event that could be read"
            raise InputRefused(message, source=self._path, code="no_events", remedy="check that it is an artifact")
        yield from self._events.rest()
        yield from self._activities.rest()
        run = self._run()
        yield from self._fates.batches(self._run_id)
        yield run

    def _of_envelope(self, event_type: str, id_: str, row: dict[str, Any]) -> None:
        if event_type == "envelope.run":
            self._runs.add(id_)
        text = json.dumps(row, ensure_ascii=False, sort_keys=True)
        self._events.add(self._seq, event_type, id_, None, None, None, None, None, text)
        self._fates.keep(event_type, "engine_events")
        self._seq += 1

    def _lines(self, file: Path) -> Iterator[tuple[int, bytes]]:
        """Every line that is not blank, with its number; what damage cuts off is data loss."""
        number, rest = 0, b""
        try:
            for piece in chunks(file):
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    number += 1
                    if line.strip():
                        yield number, line
                if len(rest) > LONGEST_LINE:
                    message = f"no line ends within {LONGEST_LINE} bytes; what follows was not read"
                    self._fates.note("line_too_long", "data_loss", message, line=number + 1)
                    return
        except StreamDamaged as error:
            self._fates.note("stream_damaged", "data_loss", error.message, offset=error.offset)
        if rest.strip():
            yield number + 1, rest

    def _record(self, number: int, line: bytes) -> None:
        try:
            event = decoded(line, self._contexts)
        except Fault as fault:
            self._fates.drop("record", "undecodable_record", str(fault), line=number)
            return
        self._versions.add(event.version)
        if event.repaired:
            message = "a number that is not finite was read as null; JSON has none"
            self._fates.note("not_finite", "warning", message, line=number)
        if event.event_type == "infer.context":
            self._define(event, number)
        elif event.event_type == "infer.activity_ref" and event.version > 1:
            self._activity(event, number)
        else:
            self._event(event)

    def _define(self, event: Event, number: int) -> None:
        try:
            id_, context = definition(event)
            if self._contexts.setdefault(id_, context) != context:
                raise Fault(f"context {id_[:40]!r} was defined before with another content")
        except Fault as fault:
            self._fates.drop("infer.context", "undecodable_record", str(fault), line=number)
            return
        self._runs.add(context.run_id)
        fields = {"context_id": id_, "context": event.fields["context"]}
        text = json.dumps(fields, ensure_ascii=False, sort_keys=True)
        self._events.add(self._seq, "infer.context", id_, None, None, None, None, None, text)
        self._keep(event, "infer.context", "engine_events")

    def _event(self, event: Event) -> None:
        fields, context = event.fields, event.context
        start, end = fields.get("start_ns"), fields.get("end_ns")
        begun = start if type(start) is int and 0 <= start < 2**63 else None
        lasted = end - begun if begun is not None and type(end) is int and begun <= end < 2**63 else None
        if event.version == 1:
            rest = {name: value for name, value in fields.items() if name != "event_type"}
        else:
            rest = {name: value for name, value in fields.items() if name not in _PLACED and value is not None}
            if begun is None and end is not None:
                rest["end_ns"] = end
        if context is not None:
            self._runs.add(context.run_id)
            rest |= {"session_id": context.session_id, "producer_id": context.producer_id}
        self._events.add(
            self._seq,
            event.event_type if event.version > 1 else f"{event.event_type} (legacy)",
            _name(fields) or f"line-{self._seq}",
            entity(fields.get("request_ref")),
            entity(fields.get("iteration_ref")),
            context.clock_domain if context else None,
            begun,
            lasted,
            json.dumps(rest, ensure_ascii=False, sort_keys=True, allow_nan=False) if rest else None,
        )
        self._keep(event, event.event_type if event.version > 1 else "legacy", "engine_events")

    def _activity(self, event: Event, number: int) -> None:
        try:
            found = ActivityEvent.of(event)
        except Fault as fault:
            self._fates.drop("infer.activity_ref", "undecodable_record", str(fault), line=number)
            return
        self._runs.add(found.context.run_id)
        self._activities.add(self._seq, *found.cells())
        self._keep(event, "infer.activity_ref", "activities")

    def _keep(self, event: Event, kind: str, plane: str) -> None:
        if event.repaired:
            self._fates.repair(kind, plane, "not_finite")
        else:
            self._fates.keep(kind, plane)

    def _run(self) -> PlaneBatch:
        if len(self._runs) > 1:
            message = f"the records name {len(self._runs)} runs, expected one"
            self._fates.note("several_runs", "warning", message)
        named = next(iter(self._runs)) if len(self._runs) == 1 else None
        return ForeignRun(
            run_id=self._run_id,
            schema="infer",
            source_format=StormlogReader.name,
            source_digest=self._digest,
            producer="stormlog",
            source_version=str(max(self._versions)),
            time_unit="ns",
            link_keys=("cuda_correlation_id", "runtime_correlation_id"),
            tags={"stormlog.run_id": named} if named else {},
            data_lost=self._fates.data_lost,
        ).batch(self._path, self._fates.rows)


_PLACED = frozenset({"event_type", "event_id", "schema_version", "request_ref", "iteration_ref", "start_ns", "end_ns"})


def _name(fields: dict[str, Any]) -> str | None:
    """The id of a record; legacy ones may have anything there."""
    found = fields.get("event_id")
    return found if isinstance(found, str) else None
