"""What all events of an inference run share: references, the context that says who speaks, and the checks.

The rules are those of the correlation capture, part 2.1. Every breach raises :class:`ContractError`, a ``ValueError``.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from .errors import ContractError

CLOCK_KINDS = ("monotonic", "wall", "device")
COLLECTION_MODES = ("active", "passive", "imported")
PROVENANCE = ("observed", "reported", "estimated")
_NAMED = ("run_id", "session_id", "producer_id", "source", "clock_domain")
_OPTIONAL_NAMES = ("source_version", "engine", "engine_version", "backend", "backend_version", "host", "device_uuid")


def refused(message: str) -> ContractError:
    """The error of a value that breaks a rule."""
    return ContractError(message, code="inference_event")


def check_name(name: str, value: object) -> None:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise refused(f"{name} is {value!r:.80}, expected a string that is not empty")


def check_optional_name(name: str, value: object) -> None:
    """None, or a string that is not empty."""
    if value is not None:
        check_name(name, value)


def check_count(name: str, value: object, least: int = 0) -> None:
    """None, or a whole number of at least ``least``; a bool is none."""
    if value is not None and (type(value) is not int or value < least):
        raise refused(f"{name} is {value!r:.80}, expected a whole number of {least} or more, or None")


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """One of ``allowed``."""
    if value not in allowed:
        raise refused(f"{name} is {value!r:.80}, expected one of {', '.join(allowed)}")


def check_span(start_ns: object, end_ns: object) -> None:
    """Two optional times in order; equal ones are."""
    check_count("start_ns", start_ns)
    check_count("end_ns", end_ns)
    if isinstance(start_ns, int) and isinstance(end_ns, int) and end_ns < start_ns:
        raise refused(f"end_ns is {end_ns}, before start_ns {start_ns}")


@dataclass(frozen=True, slots=True)
class EntityRef:
    """An entity, by the one who names it and the name; the same id of another producer is another entity."""

    producer_id: str
    id: str

    def __post_init__(self) -> None:
        check_name("producer_id", self.producer_id)
        check_name("id", self.id)


def check_ref(name: str, value: object, *, optional: bool = False) -> None:
    """An :class:`EntityRef`; with ``optional``, or None."""
    if not isinstance(value, EntityRef) and not (optional and value is None):
        raise refused(f"{name} is {value!r:.80}, expected an EntityRef" + (" or None" if optional else ""))


@dataclass(frozen=True, slots=True)
class CorrelationContext:
    """Who says a thing, of which process and device, and on which clock; None is "not known"."""

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

    def __post_init__(self) -> None:
        for name in _NAMED:
            check_name(name, getattr(self, name))
        check_choice("clock_kind", self.clock_kind, CLOCK_KINDS)
        check_choice("collection_mode", self.collection_mode, COLLECTION_MODES)
        check_choice("provenance", self.provenance, PROVENANCE)
        for name in _OPTIONAL_NAMES:
            check_optional_name(name, getattr(self, name))
        for name in ("pid", "rank", "local_rank"):
            check_count(name, getattr(self, name))
        check_count("world_size", self.world_size, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationEvent:
    """Base of the events. ``metadata`` is free; it must be JSON without NaN and infinity when it is written."""

    event_type: ClassVar[str] = "infer."

    context: CorrelationContext
    event_id: str
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.context, CorrelationContext):
            raise refused(f"context is {self.context!r:.80}, expected a CorrelationContext")
        if not isinstance(self.event_id, str) or not self.event_id:
            check_name("event_id", self.event_id)
        if not isinstance(self.metadata, dict):
            raise refused(f"metadata is {self.metadata!r:.80}, expected a dict")

    @property
    def schema_version(self) -> int:
        """The version of the record with its context in it: 3 for an activity with busy intervals, else 2."""
        return 2

    @property
    def elapsed_ns(self) -> int | None:
        """From start to end; None without both, or when the clock is not monotonic."""
        start, end = getattr(self, "start_ns", None), getattr(self, "end_ns", None)
        if self.context.clock_kind != "monotonic" or start is None or end is None:
            return None
        return int(end - start)

    def to_record(self) -> dict[str, Any]:
        """The event as a JSON object, with its context in it."""
        own = {item.name: _plain(getattr(self, item.name)) for item in fields(self)}
        return {"schema_version": self.schema_version, "event_type": self.event_type, **own}


def _plain(value: Any) -> Any:
    if isinstance(value, EntityRef | CorrelationContext):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    return value


def entity_id(producer_id: str, id: str) -> str:
    """``producer/id``, as planes name an entity; ``/`` and ``%`` of the producer are written %2F and %25."""
    if "/" in producer_id or "%" in producer_id:
        producer_id = producer_id.replace("%", "%25").replace("/", "%2F")
    return f"{producer_id}/{id}"


def entity_of(text: str) -> EntityRef:
    """The reference that :func:`entity_id` wrote."""
    producer, _, id_ = text.partition("/")
    return EntityRef(producer.replace("%2F", "/").replace("%25", "%"), id_)


def context_id(context: CorrelationContext) -> str:
    """The id of a context by its content: ``ctx-`` and 16 hex digits (correlation capture, part 2.3)."""
    text = json.dumps(_plain(context), sort_keys=True, separators=(",", ":"))
    return f"ctx-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
