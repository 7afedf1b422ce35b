"""Links activities of a trace to iterations by the ids they share with launches of the engine, never by time.

The rule is that of the correlation capture, part 1.3, over the events of one call. Over a whole artifact the view
``activity_links`` follows the same rule, and gives candidates too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .infer_activity import ActivityReferenceEvent
from .infer_base import CorrelationEvent, EntityRef

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Unlinked:
    """Why an activity stayed unlinked: no_identity, ambiguous_ids, ids_disagree, scope_differs or no_anchor.

    ``candidates`` are the iterations that its ids lead to.
    """

    activity_ref: EntityRef
    reason: str
    candidates: tuple[EntityRef, ...] = ()


def link_trace_activities(
    engine_events: Iterable[CorrelationEvent], trace_events: Iterable[CorrelationEvent]
) -> tuple[CorrelationEvent, ...]:
    """The events of the trace, in order; those whose ids lead to exactly one iteration as linked copies.

    Launches of ``engine_events`` with an iteration anchor. An id counts within its run, session, host, process,
    device and scope alone; what has no host, process or scope stays as it is. Every event that is not linked is the
    same object as before.
    """
    anchors = _anchors(engine_events)
    return tuple(_linked(event, anchors) for event in trace_events)


def explain_unlinked(
    engine_events: Iterable[CorrelationEvent], trace_events: Iterable[CorrelationEvent]
) -> tuple[Unlinked, ...]:
    """Why each activity of the trace stays unlinked, in order; nothing for those that are linked."""
    launches = [event for event in engine_events if _is_anchor(event)]
    anchors = _anchors(launches)
    anywhere = {key[-1] for launch in launches for key in _ids(launch)}
    return tuple(
        _reason(event, anchors, anywhere)
        for event in trace_events
        if isinstance(event, ActivityReferenceEvent)
        and event.iteration_ref is None
        and _linked(event, anchors) is event
    )


def _anchors(events: Iterable[CorrelationEvent]) -> dict[Key, set[EntityRef]]:
    anchors: dict[Key, set[EntityRef]] = {}
    for event in events:
        if isinstance(event, ActivityReferenceEvent) and event.iteration_ref is not None:
            for key in _keys(event):
                anchors.setdefault(key, set()).add(event.iteration_ref)
    return anchors


def _is_anchor(event: CorrelationEvent) -> bool:
    return isinstance(event, ActivityReferenceEvent) and event.iteration_ref is not None


def _ids(event: CorrelationEvent) -> Iterator[Key]:
    """The ids of an activity, each with its kind: a runtime id never meets a CUDA id."""
    assert isinstance(event, ActivityReferenceEvent)
    if event.runtime_correlation_id is not None:
        yield (("runtime", event.runtime_correlation_id),)
    if event.cuda_correlation_id is not None:
        yield (("cuda", event.cuda_correlation_id),)


def _keys(event: ActivityReferenceEvent) -> list[Key]:
    context, scope = event.context, event.correlation_scope
    if scope is None or context.host is None or context.pid is None:
        return []
    place = (context.run_id, context.session_id, context.host, context.pid, context.device_uuid, scope)
    return [place + id_ for id_ in _ids(event)]


def _linked(event: CorrelationEvent, anchors: dict[Key, set[EntityRef]]) -> CorrelationEvent:
    if not isinstance(event, ActivityReferenceEvent) or event.iteration_ref is not None:
        return event
    found = set[EntityRef]().union(*(anchors.get(key, ()) for key in _keys(event)))
    if len(found) != 1:
        return event
    return replace(event, iteration_ref=found.pop(), attribution_status="linked")


def _reason(event: ActivityReferenceEvent, anchors: dict[Key, set[EntityRef]], anywhere: set[Any]) -> Unlinked:
    claims = [anchors.get(key, set()) for key in _keys(event)]
    found = sorted(set[EntityRef]().union(*claims), key=lambda ref: (ref.producer_id, ref.id))
    own = [id_[-1] for id_ in _ids(event)]
    if event.correlation_scope is None or not own:
        reason = "no_identity"
    elif any(len(claim) > 1 for claim in claims):
        reason = "ambiguous_ids"
    elif len(found) > 1:
        reason = "ids_disagree"
    else:
        reason = "scope_differs" if anywhere.intersection(own) else "no_anchor"
    return Unlinked(event.activity_ref, reason, tuple(found))
