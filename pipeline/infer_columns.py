"""Events of an inference run as rows of planes, a block at a time, with the digests that recognise them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..recorder.errors import ContractError
from ..recorder.infer_activity import ActivityReferenceEvent
from ..recorder.infer_base import CorrelationContext, CorrelationEvent, EntityRef, context_id, entity_id
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
            kinds = set(map(type, block))
            for kind in kinds:
                if not issubclass(kind, CorrelationEvent):
                    raise _refused(f"found a {kind.__name__}, expected a CorrelationEvent")
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

    def _numbers(self, contexts: Sequence[CorrelationContext]) -> Any:
        """The number of each context; one that is new is checked."""
        identities = np.fromiter(map(id, contexts), np.uint64, len(contexts))
        _, first, inverse = np.unique(identities, return_index=True, return_inverse=True)
        return np.array([self._context(contexts[place]) for place in first], np.int32)[inverse]

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
        return _coded(numbers, values, type_)

    def _add_activities(self, block: list[ActivityReferenceEvent], origin: str | None) -> None:
        # Column by column: a tuple for each event would set off the cyclic collector over all events of the caller.
        found = {name: list(map(attrgetter(name), block)) for name in _FIELDS}
        numbers = self._numbers(found["context"])
        attributes, reasons, spans = _rests(block, found)
        starts, ends = (pa.array(found[name], pa.int64()) for name in ("start_ns", "end_ns"))
        columns: dict[str, Any] = {
            "event_id": _strings(found["event_id"]),
            "activity_id": _strings([entity_id(ref.producer_id, ref.id) for ref in found["activity_ref"]]),
            "kind": _strings(found["activity_kind"]).dictionary_encode(),
            "domain": _strings(found["activity_domain"]).dictionary_encode(),
            "iteration_id": _entities(found["iteration_ref"]),
            "scope": _entities(found["correlation_scope"]),
            "attachment_id": _strings(found["trace_attachment_id"]).dictionary_encode(),
            "start_ns": starts,
            "duration_ns": pc.subtract(ends, starts),
            "attributes": _strings(attributes),
            "unresolved_reason": _strings(reasons).dictionary_encode(),
            "context_id": _coded(numbers, self._ids, pa.string()),
        }
        for name in _LINK_IDS:
            columns[name] = pa.array(found[name], pa.int64())
        self.attachment_ids.update(filter(None, columns["attachment_id"].dictionary.to_pylist()))
        texts = _strings([None if pairs is None else str(pairs) for pairs in spans])
        facts = row_digests([column for name, column in columns.items() if name != "event_id"] + [texts])
        entities = row_digests([_coded(np.zeros(len(block), np.int32), ["activity"]), columns["activity_id"]])
        sessions = self._of_contexts(numbers, "session_id", pa.string())
        producers = self._of_contexts(numbers, "producer_id", pa.string())
        keys = row_digests([sessions, producers, columns["event_id"]])
        for name in _LINK_IDS:
            columns[name] = columns[name].cast(pa.string())
        columns["session_id"] = sessions
        columns["interval_offsets"] = _lists(spans, 0)
        columns["interval_durations"] = _lists(spans, 1)
        columns["origin"] = _coded(np.zeros(len(block), np.int32), [origin])
        for name, source, type_ in _OF_CONTEXT:
            columns[name] = self._of_contexts(numbers, source, type_)
        names = [name for name in PLANES["activities"].column_names if name in columns]
        self.activities.add(pa.table({name: columns[name] for name in names}), keys, entities, facts)

    def _add_others(self, block: list[CorrelationEvent]) -> None:
        numbers = self._numbers([event.context for event in block])
        rows = [engine_row(event, self._ids[number]) for event, number in zip(block, numbers, strict=True)]
        columns = {
            name: pa.array(values, type_)
            for (name, type_), values in zip(ENGINE_COLUMNS, zip(*rows, strict=True), strict=True)
        }
        table = pa.table(columns)
        facts = row_digests([table.column(name) for name in table.column_names if name != "event_id"])
        entities = row_digests([_strings([entity_key(event) for event in block])])
        sessions = _strings([event.context.session_id for event in block])
        producers = _strings([event.context.producer_id for event in block])
        keys = row_digests([sessions, producers, columns["event_id"]])
        self.events.add(table, keys, entities, facts)


_LINK_IDS = ("runtime_correlation_id", "cuda_correlation_id", "stream_id", "graph_id")
_FIELDS = (
    *("context", "event_id", "activity_ref", "activity_kind", "activity_domain", "iteration_ref", "correlation_scope"),
    *("trace_attachment_id", "start_ns", "end_ns", "metadata"),
    *_LINK_IDS,
)
_OF_CONTEXT = (
    ("host", "host", pa.string()),
    ("process_id", "pid", pa.int64()),
    ("device", "device_uuid", pa.string()),
    ("clock_id", "clock_domain", pa.string()),
    ("clock_kind", "clock_kind", pa.string()),
)


def _refused(message: str) -> ContractError:
    return ContractError(message, code="inference_event")


def _strings(values: list[Any]) -> Any:
    return pa.array(values, pa.string())


def _coded(numbers: Any, values: Sequence[Any], type_: Any = None) -> Any:
    """The values at these places, kept once each: a block repeats few."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(values, type_ or pa.string()))


def _entities(refs: Sequence[EntityRef | None]) -> Any:
    """Their ids, or NULL; launches and kernels share few iterations and scopes."""
    distinct = {id(ref): ref for ref in refs}
    places = {own: place for place, own in enumerate(distinct)}
    numbers = np.fromiter(map(places.__getitem__, map(id, refs)), np.int32, len(refs))
    ids = [None if ref is None else entity_id(ref.producer_id, ref.id) for ref in distinct.values()]
    return _coded(numbers, ids)


def _lists(spans: list[Any], part: int) -> Any:
    type_ = PLANES["activities"].schema.field("interval_offsets").type
    return pa.array([None if pairs is None else [pair[part] for pair in pairs] for pairs in spans], type_)


def _rests(block: list[ActivityReferenceEvent], found: dict[str, list[Any]]) -> tuple[list[Any], list[Any], list[Any]]:
    """Per event what has no column of its own as JSON, the reason that the producer gives, the busy intervals."""
    attributes: list[Any] = [None] * len(block)
    reasons, spans = attributes.copy(), attributes.copy()
    ends_alone = [
        start is None and end is not None for start, end in zip(found["start_ns"], found["end_ns"], strict=True)
    ]
    for place, (metadata, alone) in enumerate(zip(found["metadata"], ends_alone, strict=True)):
        if metadata or alone:
            attributes[place], reasons[place], spans[place] = _rest(block[place], metadata)
    return attributes, reasons, spans


def _rest(event: ActivityReferenceEvent, metadata: Any) -> tuple[str | None, str | None, Any]:
    intervals, reason = metadata.get("intervals"), metadata.get("unresolved_reason")
    left = {name: value for name, value in metadata.items() if name != "intervals" or value is None}
    fields: dict[str, Any] = {"metadata": left} if left else {}
    if event.start_ns is None and event.end_ns is not None:
        fields["end_ns"] = event.end_ns
    return attributes_json(event, fields), reason if isinstance(reason, str) and reason else None, intervals
