"""Correlation events of stormlog as its format defines them (correlation capture, part 2): one record at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ..recorder.infer_base import entity_id
from ..recorder.planes import INT64_MAX

_CLOCKS = ("monotonic", "wall", "device")
_MODES = ("active", "passive", "imported")
_PROVENANCE = ("observed", "reported", "estimated")
_DOMAINS = ("gpu", "runtime", "cpu", "unknown")
_NAMES = ("artifact", "request", "iteration", "stage", "membership", "activity_ref", "capabilities", "context")
_TYPES = frozenset(f"infer.{name}" for name in (*_NAMES, "clock_alignment"))


class Fault(Exception):
    """A record breaks the format; the text says how."""


class Context(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Who says a thing, and on which clock."""

    run_id: str
    session_id: str
    producer_id: str
    source: str
    clock_domain: str
    clock_kind: str
    collection_mode: str
    provenance: str
    source_version: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    backend: str | None = None
    backend_version: str | None = None
    host: str | None = None
    device_uuid: str | None = None
    pid: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None


@dataclass(frozen=True)
class Event:
    """One record: its type, its version, its context (None for legacy records), and all of its members.

    ``repaired``: a NaN or an infinity in it, which is no JSON, was read as null.
    """

    event_type: str
    version: int
    context: Context | None
    fields: dict[str, Any]
    repaired: bool = False


def decoded(line: bytes, contexts: Mapping[str, Context]) -> Event:
    """Decode one line against the contexts defined before it. Raises :class:`Fault`."""
    fields, repaired = _object(line)
    kind, version = fields.get("event_type"), fields.get("schema_version", 1)
    if not isinstance(kind, str) or not kind.startswith("infer."):
        raise Fault(f"found event_type {kind!r}"[:120] + ", expected infer.*")
    if type(version) is not int or not 1 <= version <= 4:
        raise Fault(f"found schema_version {version!r}"[:120] + ", expected 1 to 4")
    if version == 1:
        return Event(kind, 1, None, fields, repaired)
    if kind not in _TYPES:
        raise Fault(f"{kind[:60]} is no type of schema version {version}")
    if kind == "infer.context":
        return Event(kind, version, None, fields, repaired)
    return Event(kind, version, _context(fields, version, contexts), fields, repaired)


def _object(line: bytes) -> tuple[dict[str, Any], bool]:
    """The object on a line, and whether it holds the numbers that stormlog writes although JSON has none of them."""
    try:
        found, repaired = msgspec.json.decode(line), False
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        if b"NaN" not in line and b"Infinity" not in line:
            raise Fault(f"is no JSON: {str(error)[:120]}") from None
        found, repaired = _lenient(line), True
    if not isinstance(found, dict):
        raise Fault("is no JSON object")
    return found, repaired


def _lenient(line: bytes) -> Any:
    try:
        return json.loads(line, parse_constant=lambda name: None)
    except (ValueError, RecursionError) as error:
        raise Fault(f"is no JSON: {str(error)[:120]}") from None


def definition(event: Event) -> tuple[str, Context]:
    """The id and the context that an ``infer.context`` record defines. Raises :class:`Fault`."""
    id_ = event.fields.get("context_id")
    if event.version != 4 or not isinstance(id_, str) or not id_:
        raise Fault("a context needs schema_version 4 and a context_id")
    return id_, _converted(event.fields.get("context"))


def _context(fields: dict[str, Any], version: int, contexts: Mapping[str, Context]) -> Context:
    embedded, id_ = fields.get("context"), fields.get("context_id")
    if (embedded is None) == (id_ is None):
        raise Fault("needs exactly one of context and context_id")
    if embedded is not None:
        return _converted(embedded)
    if version != 4:
        raise Fault(f"schema version {version} has its context in itself, found a context_id")
    if not isinstance(id_, str) or id_ not in contexts:
        raise Fault(f"names the context {id_!r}"[:100] + ", which was not defined before it")
    return contexts[id_]


def _converted(value: Any) -> Context:
    try:
        found = msgspec.convert(value, Context)
    except msgspec.ValidationError as error:
        raise Fault(f"its context: {str(error)[:160]}") from None
    needed = (found.run_id, found.session_id, found.producer_id, found.source, found.clock_domain)
    if not all(needed):
        raise Fault("its context has an empty id, source or clock_domain")
    for value, allowed in (
        (found.clock_kind, _CLOCKS),
        (found.collection_mode, _MODES),
        (found.provenance, _PROVENANCE),
    ):
        if value not in allowed:
            raise Fault(f"its context has {value[:40]!r}, expected one of {', '.join(allowed)}")
    if any(number is not None and not 0 <= number <= INT64_MAX for number in (found.pid, found.rank, found.local_rank)):
        raise Fault("its context has a pid or rank below 0")
    return found


def entity(value: Any) -> str | None:
    """An entity reference as ``producer/id``; None for none."""
    if isinstance(value, dict) and isinstance(value.get("producer_id"), str) and isinstance(value.get("id"), str):
        return entity_id(value["producer_id"], value["id"])
    return None


@dataclass(frozen=True)
class ActivityEvent:
    """A reference to one activity, checked."""

    context: Context
    fields: dict[str, Any]
    offsets: list[int] | None
    durations: list[int] | None

    @classmethod
    def of(cls, event: Event) -> ActivityEvent:
        """Check a record. Raises :class:`Fault`."""
        fields, context = event.fields, event.context
        assert context is not None
        if entity(fields.get("activity_ref")) is None or not isinstance(fields.get("activity_kind"), str):
            raise Fault("an activity needs an activity_ref and an activity_kind")
        if fields.get("activity_domain", "unknown") not in _DOMAINS:
            raise Fault(f"found activity_domain {fields['activity_domain']!r}"[:100])
        linked = entity(fields.get("iteration_ref")) is not None
        if fields.get("attribution_status") != ("linked" if linked else "unresolved"):
            raise Fault("its attribution_status does not agree with its iteration_ref")
        start, end = _number(fields, "start_ns"), _number(fields, "end_ns")
        for name in ("runtime_correlation_id", "cuda_correlation_id", "stream_id", "graph_id"):
            _number(fields, name)
        if start is not None and end is not None and end < start:
            raise Fault(f"it ends at {end}, before its start {start}")
        metadata = fields.get("metadata") or {}
        intervals = metadata.get("intervals") if isinstance(metadata, dict) else None
        if intervals is None:
            return cls(context, fields, None, None)
        offsets, durations = _intervals(intervals, start, end)
        return cls(context, fields, offsets, durations)

    def cells(self) -> tuple[Any, ...]:
        """The row of the plane ``activities``, without its seq."""
        fields, context = self.fields, self.context
        start, end = fields.get("start_ns"), fields.get("end_ns")
        ids = (_text(fields.get(name)) for name in ("runtime_correlation_id", "cuda_correlation_id"))
        places = (_text(fields.get("stream_id")), _text(fields.get("graph_id")), fields.get("trace_attachment_id"))
        metadata = fields.get("metadata")
        reason = metadata.get("unresolved_reason") if isinstance(metadata, dict) else None
        return (
            *(str(fields.get("event_id")), entity(fields["activity_ref"]), fields["activity_kind"]),
            *(fields.get("activity_domain", "unknown"), entity(fields.get("iteration_ref"))),
            *(entity(fields.get("correlation_scope")), *ids, context.session_id, context.host, context.pid),
            *(context.device_uuid, context.clock_domain, context.clock_kind, *places),
            *(start, None if start is None or end is None else end - start, self.offsets, self.durations),
            *(reason if isinstance(reason, str) else None, fields.get("context_id"), self._rest()),
        )

    def _rest(self) -> str | None:
        """What has no column, as JSON: metadata, an end without a start, a context of the record's own."""
        metadata = self.fields.get("metadata")
        if isinstance(metadata, dict):
            metadata = {name: value for name, value in metadata.items() if name != "intervals" or value is None}
        rest = {"metadata": metadata, "context": self.fields.get("context")}
        if self.fields.get("start_ns") is None:
            rest["end_ns"] = self.fields.get("end_ns")
        rest = {name: value for name, value in rest.items() if value is not None and value != {}}
        return json.dumps(rest, ensure_ascii=False, sort_keys=True, allow_nan=False) if rest else None


def _number(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is None or (type(value) is int and 0 <= value <= INT64_MAX):
        return value
    raise Fault(f"found {name} {value!r}"[:100] + ", expected a whole number of 0 or more")


def _intervals(value: Any, start: int | None, end: int | None) -> tuple[list[int], list[int]]:
    """Busy intervals inside an activity: sorted, disjoint, inside its span."""
    if start is None or end is None or not isinstance(value, list) or not value:
        raise Fault("its intervals need a whole span, and at least one of them")
    reached, offsets, durations = 0, [], []
    for pair in value:
        whole = isinstance(pair, list) and len(pair) == 2 and all(type(n) is int and 0 <= n <= INT64_MAX for n in pair)
        if not whole or pair[0] < reached:
            raise Fault("its intervals are no sorted, disjoint pairs of offset and duration")
        offsets.append(pair[0])
        durations.append(pair[1])
        reached = pair[0] + pair[1]
    if reached > end - start:
        raise Fault(f"its intervals reach {reached} ns, beyond its span of {end - start}")
    return offsets, durations


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
