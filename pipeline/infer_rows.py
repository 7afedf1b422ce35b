"""One event of an engine as a row of the plane ``engine_events``."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from ..recorder.errors import ContractError
from ..recorder.infer_base import CorrelationEvent, EntityRef, entity_id
from ..recorder.infer_events import (
    CapabilityEvent,
    ClockAlignmentEvent,
    IterationEvent,
    MembershipEvent,
    RequestEvent,
    StageEvent,
)
from ..recorder.planes import INT64_MAX

_NAMES = ("event_type", "event_id", "request_id", "iteration_id", "clock_id", "start_ns", "duration_ns", "attributes")
ENGINE_COLUMNS = tuple((name, pa.int64() if name.endswith("_ns") else pa.string()) for name in _NAMES)
_PLACED = frozenset({"schema_version", "event_type", "event_id", "context", "request_ref", "iteration_ref"})


def engine_row(event: CorrelationEvent, context: str) -> tuple[Any, ...]:
    """The values of :data:`ENGINE_COLUMNS`; ``context`` is the id of the event's context.

    What has no column is one JSON object, with the session and the producer. Raises :class:`ContractError` for what
    is no JSON, NaN and infinity among it.
    """
    fields = event.to_record()
    start, end = fields.pop("start_ns", None), fields.pop("end_ns", None)
    rest = {name: value for name, value in fields.items() if name not in _PLACED and value is not None}
    if start is None and end is not None:
        rest["end_ns"] = end
    own = event.context
    rest |= {"session_id": own.session_id, "producer_id": own.producer_id, "context_id": context}
    for number in (start, end):
        if number is not None and number > INT64_MAX:
            raise OverflowError(f"event {event.event_id!r:.60} has the time {number}")
    return (
        event.event_type,
        event.event_id,
        _entity(fields.get("request_ref")),
        _entity(fields.get("iteration_ref")),
        own.clock_domain,
        start,
        None if start is None or end is None else end - start,
        attributes_json(event, rest),
    )


def attributes_json(event: CorrelationEvent, fields: dict[str, Any]) -> str | None:
    """Fields as JSON, None for none. Raises :class:`ContractError` for what is no JSON, with the event's name."""
    if not fields:
        return None
    try:
        return json.dumps(fields, ensure_ascii=False, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(
            f"the metadata of event {event.event_id!r:.80} is no JSON: {str(error)[:120]}",
            code="not_json",
            remedy="leave NaN and infinity out, and write other objects as text",
        ) from None


def entity_key(event: CorrelationEvent) -> str:
    """What two events must share to speak of one entity (correlation capture, 4.1); else the event's own identity."""
    match event:
        case RequestEvent():
            parts = ["request", event.request_ref, event.attempt_ref]
        case IterationEvent():
            parts = ["iteration", event.iteration_ref]
        case StageEvent():
            parts = ["stage", event.stage_ref]
        case MembershipEvent():
            parts = ["membership", event.request_ref, event.attempt_ref, event.iteration_ref, event.role]
        case ClockAlignmentEvent():
            own = event.context
            names = [own.session_id, own.producer_id, event.from_clock_domain, event.to_clock_domain]
            numbers = [event.offset_ns, event.uncertainty_ns, event.valid_from_ns, event.valid_to_ns]
            parts = ["alignment", *names, *numbers]
        case CapabilityEvent() | _:
            parts = ["event", event.context.session_id, event.context.producer_id, event.event_id]
    return json.dumps([[part.producer_id, part.id] if isinstance(part, EntityRef) else part for part in parts])


def _entity(ref: Any) -> str | None:
    return None if ref is None else entity_id(ref["producer_id"], ref["id"])
