"""Events of an inference run as rows of planes, a block at a time, with the digests that recognise them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..recorder.errors import ContractError
from ..recorder.infer_base import CorrelationContext, CorrelationEvent, EntityRef, context_id, entity_id
from ..recorder.infer_events import ActivityReferenceEvent
from ..recorder.planes import PLANES
from .infer_digest import row_digests
from .infer_rows import ENGINE_COLUMNS, attributes_json, engine_row, entity_key

BLOCK_EVENTS = 1 << 13


@dataclass
class Gathered:
    """Rows of one plane, and per row the keys of its event and of its entity, and the digest of its content."""

    tables: list[Any] = field(default_factory=list)
    event_keys: list[Any] = field(default_factory=list)
    entity_keys: list[Any] = field(default_factory=list)
    facts: list[Any] = field(default_factory=list)

    def add(self, table: Any, event_keys: Any, entity_keys: Any, facts: Any) -> None:
        """One block."""
        self.tables.append(table)
        self.event_keys.append(event_keys)
        self.entity_keys.append(entity_keys)
        self.facts.append(facts)


class Columns:
    """Gathers the events of one append. ``check_context`` is called once for each context."""

    def __init__(self, check_context: Callable[[CorrelationContext], None]) -> None:
        self.activities = Gathered()
        self.events = Gathered()
        self.contexts: dict[str, CorrelationContext] = {}
        self.attachment_ids: set[str] = set()
        self._check = check_context
        self._known: dict[int, tuple[int, CorrelationContext]] = {}
        self._ids: list[str] = []

    def add(self, events: Iterable[CorrelationEvent], origin: str | None) -> None:
        """Add events; raises :class:`ContractError` for what is no event, or cannot be written."""
        waiting = iter(events)
        while block := list(islice(waiting, BLOCK_EVENTS)):
            for event in block:
                if not isinstance(event, CorrelationEvent):
                    raise _refused(f"found a {type(event).__name__}, expected a CorrelationEvent")
            activities = [event for event in block if isinstance(event, ActivityReferenceEvent)]
            others = [event for event in block if not isinstance(event, ActivityReferenceEvent)]
            try:
                if activities:
                    self._add_activities(activities, origin)
                if others:
                    self._add_others(others)
            except UnicodeEncodeError as error:
                raise _refused(f"{error.object[:40]!r} is no text: it has a lone surrogate") from None
            except (OverflowError, pa.ArrowInvalid) as error:
                raise _refused(f"a number is beyond 63 bits: {str(error)[:120]}") from None

    def _context(self, context: CorrelationContext) -> int:
        found = self._known.get(id(context))
        if found is None:
            self._check(context)
            name = context_id(context)
            self.contexts[name] = context
            # The context is kept beside its number, so that its id() stays its own.
            found = self._known[id(context)] = (len(self._ids), context)
            self._ids.append(name)
        return found[0]

    def _of_contexts(self, numbers: Any, name: str, type_: Any) -> Any:
        values = [getattr(context, name) for _, context in self._known.values()]
        return pa.array(values, type_).take(numbers)

    def _add_activities(self, block: list[ActivityReferenceEvent], origin: str | None) -> None:
        numbers = pa.array([self._context(event.context) for event in block])
        starts = pa.array([event.start_ns for event in block], pa.int64())
        ends = pa.array([event.end_ns for event in block], pa.int64())
        rest = [_rest(event) for event in block]
        columns: dict[str, Any] = {
            "event_id": _strings(event.event_id for event in block),
            "activity_id": _strings(
                entity_id(event.activity_ref.producer_id, event.activity_ref.id) for event in block
            ),
            "kind": _strings(event.activity_kind for event in block),
            "domain": _strings(event.activity_domain for event in block),
            "iteration_id": _strings(_entity(event.iteration_ref) for event in block),
            "scope": _strings(_entity(event.correlation_scope) for event in block),
            "attachment_id": _strings(event.trace_attachment_id for event in block),
            "start_ns": starts,
            "duration_ns": pc.subtract(ends, starts),
            "attributes": _strings(text for text, _, _ in rest),
            "unresolved_reason": _strings(reason for _, reason, _ in rest),
            "context_id": pa.array(self._ids, pa.string()).take(numbers),
        }
        for name in ("runtime_correlation_id", "cuda_correlation_id", "stream_id", "graph_id"):
            columns[name] = pa.array([getattr(event, name) for event in block], pa.int64())
        self.attachment_ids.update(pc.unique(columns["attachment_id"].drop_null()).to_pylist())
        spans = [intervals for _, _, intervals in rest]
        texts = _strings(None if pairs is None else str(pairs) for pairs in spans)
        facts = row_digests([column for name, column in columns.items() if name != "event_id"] + [texts])
        entities = row_digests([pa.repeat("activity", len(block)), columns["activity_id"]])
        sessions = self._of_contexts(numbers, "session_id", pa.string())
        producers = self._of_contexts(numbers, "producer_id", pa.string())
        keys = row_digests([sessions, producers, columns["event_id"]])
        for name in ("runtime_correlation_id", "cuda_correlation_id", "stream_id", "graph_id"):
            columns[name] = columns[name].cast(pa.string())
        columns["session_id"] = sessions
        columns["interval_offsets"] = _lists(spans, 0)
        columns["interval_durations"] = _lists(spans, 1)
        columns["origin"] = pa.nulls(len(block), pa.string()) if origin is None else pa.repeat(origin, len(block))
        for name, source, type_ in _OF_CONTEXT:
            columns[name] = self._of_contexts(numbers, source, type_)
        names = [name for name in PLANES["activities"].column_names if name in columns]
        self.activities.add(pa.table({name: columns[name] for name in names}), keys, entities, facts)

    def _add_others(self, block: list[CorrelationEvent]) -> None:
        numbers = [self._context(event.context) for event in block]
        rows = [engine_row(event, self._ids[number]) for event, number in zip(block, numbers, strict=True)]
        columns = {
            name: pa.array(values, type_)
            for (name, type_), values in zip(ENGINE_COLUMNS, zip(*rows, strict=True), strict=True)
        }
        table = pa.table(columns)
        facts = row_digests([table.column(name) for name in table.column_names if name != "event_id"])
        entities = row_digests([_strings(entity_key(event) for event in block)])
        sessions = _strings(event.context.session_id for event in block)
        producers = _strings(event.context.producer_id for event in block)
        keys = row_digests([sessions, producers, columns["event_id"]])
        self.events.add(table, keys, entities, facts)


_OF_CONTEXT = (
    ("host", "host", pa.string()),
    ("process_id", "pid", pa.int64()),
    ("device", "device_uuid", pa.string()),
    ("clock_id", "clock_domain", pa.string()),
    ("clock_kind", "clock_kind", pa.string()),
)


def _refused(message: str) -> ContractError:
    return ContractError(message, code="inference_event")


def _strings(values: Iterable[str | None]) -> Any:
    return pa.array(list(values), pa.string())


def _entity(ref: EntityRef | None) -> str | None:
    return None if ref is None else entity_id(ref.producer_id, ref.id)


def _lists(spans: list[Any], part: int) -> Any:
    type_ = PLANES["activities"].schema.field("interval_offsets").type
    return pa.array([None if pairs is None else [pair[part] for pair in pairs] for pairs in spans], type_)


def _rest(event: ActivityReferenceEvent) -> tuple[str | None, str | None, Any]:
    """What has no column of its own as JSON, the reason that the producer gives, the busy intervals."""
    metadata = event.metadata
    if not metadata and (event.end_ns is None or event.start_ns is not None):
        return None, None, None
    intervals, reason = metadata.get("intervals"), metadata.get("unresolved_reason")
    left = {name: value for name, value in metadata.items() if name != "intervals" or value is None}
    fields: dict[str, Any] = {"metadata": left} if left else {}
    if event.start_ns is None and event.end_ns is not None:
        fields["end_ns"] = event.end_ns
    return attributes_json(event, fields), reason if isinstance(reason, str) and reason else None, intervals
