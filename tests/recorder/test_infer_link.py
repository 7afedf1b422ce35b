"""Linking by ids: the worked example, and what is never asked."""

from __future__ import annotations

from typing import Any

from planewise.recorder.infer_activity import ActivityReferenceEvent
from planewise.recorder.infer_base import CorrelationContext, EntityRef
from planewise.recorder.infer_events import IterationEvent
from planewise.recorder.infer_link import explain_unlinked, link_trace_activities

FIXED = {"run_id": "r", "session_id": "s", "producer_id": "p", "source": "x", "clock_domain": "c"}
KINDS = {"clock_kind": "device", "collection_mode": "active", "provenance": "observed"}
SCOPE = EntityRef("p", "cuda-context-0")
IT1, IT2 = EntityRef("p", "it-1"), EntityRef("p", "it-2")


def context(**values: Any) -> CorrelationContext:
    return CorrelationContext(**{**FIXED, **KINDS, "host": "h", "pid": 1, "device_uuid": "G", **values})


def activity(name: str, iteration: EntityRef | None = None, **values: Any) -> ActivityReferenceEvent:
    own = {"context": context(**values.pop("of", {})), "correlation_scope": SCOPE, **values}
    status = "unresolved" if iteration is None else "linked"
    ref = EntityRef("t", name)
    fixed = {"event_id": name, "activity_ref": ref, "activity_kind": "k", "attribution_status": status}
    return ActivityReferenceEvent(**fixed, iteration_ref=iteration, **own)


ENGINE = [
    activity("a", IT1, runtime_correlation_id=11, cuda_correlation_id=101),
    activity("b", IT1, cuda_correlation_id=102),
    activity("c", IT2, runtime_correlation_id=21, cuda_correlation_id=201),
    activity("x1", IT1, cuda_correlation_id=900),
    activity("x2", IT2, cuda_correlation_id=900),
    activity("nodev", IT1, cuda_correlation_id=103, of={"device_uuid": None}),
]
TRACE = [
    activity("k1", cuda_correlation_id=101),
    activity("k2", cuda_correlation_id=102),
    activity("k3", runtime_correlation_id=21, cuda_correlation_id=201),
    activity("k5", cuda_correlation_id=900),
    activity("k6", runtime_correlation_id=11, cuda_correlation_id=201),
    activity("k7", cuda_correlation_id=101, correlation_scope=None),
    activity("k8", cuda_correlation_id=101, of={"pid": 4243}),
    activity("k9", cuda_correlation_id=101, of={"device_uuid": None}),
    activity("k10", cuda_correlation_id=103),
    activity("k11", IT2),
    activity("k12", start_ns=1, end_ns=2),
    activity("k13", cuda_correlation_id=11),
]


def test_the_example_links_three_and_says_why_the_others_stay_open() -> None:
    linked = link_trace_activities(ENGINE, TRACE)
    found = {event.event_id: event.iteration_ref for event in linked if isinstance(event, ActivityReferenceEvent)}
    assert {name: ref for name, ref in found.items() if ref} == {"k1": IT1, "k2": IT1, "k3": IT2, "k11": IT2}
    assert all(event.attribution_status == "linked" for event in linked[:3])  # type: ignore[attr-defined]
    reasons = [(item.activity_ref.id, item.reason, len(item.candidates)) for item in explain_unlinked(ENGINE, TRACE)]
    assert reasons == [
        ("k5", "ambiguous_ids", 2),
        ("k6", "ids_disagree", 2),
        ("k7", "no_identity", 0),
        ("k8", "scope_differs", 0),
        ("k9", "scope_differs", 0),
        ("k10", "scope_differs", 0),
        ("k12", "no_identity", 0),
        ("k13", "no_anchor", 0),
    ]


def test_what_is_not_linked_is_the_same_object() -> None:
    iteration = IterationEvent(context=context(), event_id="i", iteration_ref=IT1)
    linked = link_trace_activities([*ENGINE, iteration], [*TRACE[3:], iteration])
    assert all(after is before for after, before in zip(linked, [*TRACE[3:], iteration], strict=True))


def test_events_of_the_trace_never_anchor_each_other() -> None:
    known = activity("k0", IT1, cuda_correlation_id=7)
    (_, open_) = link_trace_activities([], [known, activity("k", cuda_correlation_id=7)])
    assert open_.iteration_ref is None  # type: ignore[attr-defined]


def test_what_has_no_host_or_process_is_never_linked() -> None:
    for missing in ({"host": None}, {"pid": None}):
        engine = [activity("a", IT1, cuda_correlation_id=1, of=missing)]
        (event,) = link_trace_activities(engine, [activity("k", cuda_correlation_id=1, of=missing)])
        assert event.iteration_ref is None  # type: ignore[attr-defined]
