"""``planewise.infer``: the correlation capture of an inference server, as it is used from Python (docs/infer.md)."""

from __future__ import annotations

from .pipeline.infer_store import AppendReceipt, append_inference_capture, create_inference_artifact
from .recorder.infer_activity import ActivityReferenceEvent
from .recorder.infer_base import CorrelationContext, CorrelationEvent, EntityRef
from .recorder.infer_capture import (
    AbsentComponent,
    CaptureCapabilities,
    EngineAdapter,
    EngineCapture,
    SessionSummary,
    TraceAttachment,
    TraceCapture,
    TraceCollector,
    create_session_summary,
)
from .recorder.infer_events import (
    ArtifactIdentityEvent,
    CapabilityEvent,
    ClockAlignmentEvent,
    IterationEvent,
    MembershipEvent,
    RequestEvent,
    StageEvent,
)
from .recorder.infer_link import Unlinked, explain_unlinked, link_trace_activities

__all__ = [
    "AbsentComponent",
    "ActivityReferenceEvent",
    "AppendReceipt",
    "ArtifactIdentityEvent",
    "CapabilityEvent",
    "CaptureCapabilities",
    "ClockAlignmentEvent",
    "CorrelationContext",
    "CorrelationEvent",
    "EngineAdapter",
    "EngineCapture",
    "EntityRef",
    "IterationEvent",
    "MembershipEvent",
    "RequestEvent",
    "SessionSummary",
    "StageEvent",
    "TraceAttachment",
    "TraceCapture",
    "TraceCollector",
    "Unlinked",
    "append_inference_capture",
    "create_inference_artifact",
    "create_session_summary",
    "explain_unlinked",
    "link_trace_activities",
]
