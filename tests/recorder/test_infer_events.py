"""Events of an inference run: what may stand in them, and what they say of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from planewise.recorder.errors import ContractError
from planewise.recorder.infer_activity import ActivityReferenceEvent
from planewise.recorder.infer_base import CorrelationContext, EntityRef, context_id, entity_id, entity_of
from planewise.recorder.infer_capture import (
    AbsentComponent,
    CaptureCapabilities,
    TraceAttachment,
    create_session_summary,
)
from planewise.recorder.infer_events import (
    ArtifactIdentityEvent,
    CapabilityEvent,
    ClockAlignmentEvent,
    IterationEvent,
    MembershipEvent,
    RequestEvent,
    StageEvent,
)

FIXED = {"run_id": "r", "session_id": "s", "producer_id": "p", "source": "x", "clock_domain": "c"}
KINDS = {"clock_kind": "monotonic", "collection_mode": "active", "provenance": "observed"}
REF = EntityRef("p", "1")


def context(**values: Any) -> CorrelationContext:
    return CorrelationContext(**{**FIXED, **KINDS, **values})


CONTEXT = context()
BASE: dict[str, Any] = {"context": CONTEXT, "event_id": "e"}
ACTIVITY: dict[str, Any] = {
    **BASE,
    "activity_ref": REF,
    "activity_kind": "gpu_kernel",
    "attribution_status": "unresolved",
    "start_ns": 10,
    "end_ns": 40,
}
CAPABILITY: dict[str, Any] = {**BASE, "component": "engine_adapter", "available": True}
CLOCKS: dict[str, Any] = {
    **BASE,
    "from_clock_domain": "a",
    "to_clock_domain": "b",
    "offset_ns": -5,
    "uncertainty_ns": 0,
}


@pytest.mark.parametrize(
    "values",
    [
        {"run_id": ""},
        {"source": None},
        {"clock_kind": "cpu"},
        {"provenance": "guessed"},
        {"collection_mode": ""},
        {"host": ""},
        {"engine": 1},
        {"pid": -1},
        {"rank": True},
        {"local_rank": 1.0},
        {"world_size": 0},
    ],
)
def test_a_context_refuses_what_its_rules_refuse(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        context(**values)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (ArtifactIdentityEvent, {**BASE, "artifact_kind": "", "created_at_ns": 1}),
        (ArtifactIdentityEvent, {**BASE, "artifact_kind": "a", "created_at_ns": None}),
        (ArtifactIdentityEvent, {**BASE, "artifact_kind": "a", "created_at_ns": True}),
        (RequestEvent, {**BASE, "request_ref": None}),
        (RequestEvent, {**BASE, "request_ref": REF, "attempt_ref": "p/1"}),
        (RequestEvent, {**BASE, "request_ref": REF, "status": ""}),
        (RequestEvent, {**BASE, "request_ref": REF, "input_tokens": -1}),
        (RequestEvent, {**BASE, "request_ref": REF, "start_ns": 5, "end_ns": 4}),
        (IterationEvent, {**BASE, "iteration_ref": REF, "start_ns": -1}),
        (IterationEvent, {**BASE, "iteration_ref": REF, "event_id": ""}),
        (IterationEvent, {**BASE, "iteration_ref": REF, "metadata": []}),
        (IterationEvent, {**BASE, "iteration_ref": REF, "context": None}),
        (StageEvent, {**BASE, "stage_ref": REF, "name": "s"}),
        (StageEvent, {**BASE, "stage_ref": REF, "name": "", "request_ref": REF}),
        (MembershipEvent, {**BASE, "request_ref": REF, "iteration_ref": REF, "role": ""}),
        (ActivityReferenceEvent, {**ACTIVITY, "attribution_status": "linked"}),
        (ActivityReferenceEvent, {**ACTIVITY, "iteration_ref": REF}),
        (ActivityReferenceEvent, {**ACTIVITY, "activity_domain": "tpu"}),
        (ActivityReferenceEvent, {**ACTIVITY, "trace_attachment_id": ""}),
        (ActivityReferenceEvent, {**ACTIVITY, "stream_id": -1}),
        (ActivityReferenceEvent, {**ACTIVITY, "metadata": {"intervals": []}}),
        (ActivityReferenceEvent, {**ACTIVITY, "metadata": {"intervals": [[0, 10], [9, 1]]}}),
        (ActivityReferenceEvent, {**ACTIVITY, "metadata": {"intervals": [[0, 31]]}}),
        (ActivityReferenceEvent, {**ACTIVITY, "end_ns": None, "metadata": {"intervals": [[0, 1]]}}),
        (CapabilityEvent, {**CAPABILITY, "available": 1}),
        (CapabilityEvent, {**CAPABILITY, "supported": ("a",)}),
        (CapabilityEvent, {**CAPABILITY, "supported": ["a", "a"]}),
        (CapabilityEvent, {**CAPABILITY, "enabled": ["a"]}),
        (CapabilityEvent, {**CAPABILITY, "available": False, "supported": ["a"]}),
        (ClockAlignmentEvent, {**CLOCKS, "offset_ns": 1.0}),
        (ClockAlignmentEvent, {**CLOCKS, "uncertainty_ns": None}),
        (ClockAlignmentEvent, {**CLOCKS, "valid_from_ns": 2, "valid_to_ns": 1}),
    ],
)
def test_an_event_refuses_what_its_rules_refuse(kind: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ContractError):
        kind(**values)


def test_an_activity_with_intervals_is_of_version_three_and_touching_ones_are_fine() -> None:
    event = ActivityReferenceEvent(**{**ACTIVITY, "metadata": {"intervals": [[0, 10], [10, 20]]}})
    assert (event.schema_version, ActivityReferenceEvent(**ACTIVITY).schema_version) == (3, 2)


def test_time_elapses_on_a_monotonic_clock_alone() -> None:
    values = {"event_id": "e", "iteration_ref": REF, "start_ns": 3, "end_ns": 10}
    assert IterationEvent(context=CONTEXT, **values).elapsed_ns == 7
    assert IterationEvent(context=context(clock_kind="wall"), **values).elapsed_ns is None
    assert IterationEvent(context=CONTEXT, event_id="e", iteration_ref=REF, start_ns=3).elapsed_ns is None


def test_the_record_of_an_event_has_its_context_and_its_references_in_it() -> None:
    record = IterationEvent(context=CONTEXT, event_id="e", iteration_ref=REF).to_record()
    assert (record["schema_version"], record["event_type"]) == (2, "infer.iteration")
    assert record["iteration_ref"] == {"producer_id": "p", "id": "1"}
    assert record["context"]["clock_domain"] == "c"
    assert len(record["context"]) == 19


@pytest.mark.parametrize("producer", ["p", "a/b", "50%", "%2F"])
def test_the_name_of_an_entity_gives_back_its_parts(producer: str) -> None:
    assert entity_of(entity_id(producer, "x/y%2F")) == EntityRef(producer, "x/y%2F")


def test_a_context_has_the_id_that_stormlog_gives_it() -> None:
    own = context(
        run_id="run-demo",
        session_id="ses-demo",
        producer_id="demo.engine",
        source="demo.engine",
        clock_domain="gpu-host/boot-1/monotonic_ns",
        engine="demo",
        engine_version="1.0",
        host="gpu-host",
        pid=4242,
    )
    assert context_id(own) == "ctx-fe43508c096ff049"


@pytest.mark.parametrize(
    "values",
    [
        {"supported": ["a"]},
        {"supported": ("",)},
        {"supported": ("a", "a")},
        {"enabled": ("a",)},
        {"supported": ("a",), "collected": ("a",)},
    ],
)
def test_capabilities_nest_and_are_tuples_of_names(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        CaptureCapabilities(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"attachment_id": "", "url": "http://x"},
        {"title": "", "url": "http://x"},
        {},
        {"url": "http://x", "path": "a"},
        {"url": ""},
        {"path": "a", "storage": "move"},
        {"url": "http://x", "storage": "copy"},
    ],
)
def test_an_attachment_is_one_file_or_one_address(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        TraceAttachment(**{"attachment_id": "a", "title": "t", **values})


def test_an_absence_and_a_session_have_known_words() -> None:
    with pytest.raises(ValueError, match="reason"):
        AbsentComponent("forgotten")
    with pytest.raises(ValueError, match="status"):
        create_session_summary(status="lost")
    session = create_session_summary(status=" Running ", world_size=0)
    assert (session.status, session.world_size, session.rank) == ("running", 1, 0)
