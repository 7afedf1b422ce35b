"""Device work and runtime calls of an inference run, checked when they are made (correlation capture, part 2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .infer_base import (
    CorrelationEvent,
    EntityRef,
    check_choice,
    check_count,
    check_name,
    check_optional_name,
    check_ref,
    check_span,
    refused,
)

ACTIVITY_DOMAINS = ("gpu", "runtime", "cpu", "unknown")
ATTRIBUTION = ("linked", "unresolved")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityReferenceEvent(CorrelationEvent):
    """Work of a device or a runtime call, with the ids that join the two.

    ``metadata["intervals"]`` gives the busy parts as ``[offset_ns, duration_ns]`` from ``start_ns``: sorted, disjoint,
    inside the span.
    """

    event_type: ClassVar[str] = "infer.activity_ref"

    activity_ref: EntityRef
    activity_kind: str
    attribution_status: str
    activity_domain: str = "unknown"
    iteration_ref: EntityRef | None = None
    correlation_scope: EntityRef | None = None
    trace_attachment_id: str | None = None
    runtime_correlation_id: int | None = None
    cuda_correlation_id: int | None = None
    stream_id: int | None = None
    graph_id: int | None = None
    start_ns: int | None = None
    end_ns: int | None = None

    def __post_init__(self) -> None:
        CorrelationEvent.__post_init__(self)
        check_ref("activity_ref", self.activity_ref)
        check_name("activity_kind", self.activity_kind)
        check_choice("activity_domain", self.activity_domain, ACTIVITY_DOMAINS)
        check_choice("attribution_status", self.attribution_status, ATTRIBUTION)
        check_ref("iteration_ref", self.iteration_ref, optional=True)
        if (self.attribution_status == "linked") != (self.iteration_ref is not None):
            raise refused(f"attribution_status is {self.attribution_status}, iteration_ref {self.iteration_ref!r:.80}")
        check_ref("correlation_scope", self.correlation_scope, optional=True)
        check_optional_name("trace_attachment_id", self.trace_attachment_id)
        for name in ("runtime_correlation_id", "cuda_correlation_id", "stream_id", "graph_id"):
            check_count(name, getattr(self, name))
        check_span(self.start_ns, self.end_ns)
        if self.metadata.get("intervals") is not None:
            _check_intervals(self.metadata["intervals"], self.start_ns, self.end_ns)

    @property
    def schema_version(self) -> int:
        """3 with busy intervals, else 2."""
        return 3 if "intervals" in self.metadata else 2


def _check_intervals(value: object, start_ns: int | None, end_ns: int | None) -> None:
    if start_ns is None or end_ns is None or not isinstance(value, list | tuple) or not value:
        raise refused("intervals need start_ns and end_ns, and at least one interval")
    reached = 0
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or any(type(n) is not int or n < 0 for n in pair):
            raise refused(f"an interval is {pair!r:.80}, expected [offset_ns, duration_ns]")
        if pair[0] < reached:
            raise refused(f"the interval at {pair[0]} begins before {reached}, where the one before it ends")
        reached = pair[0] + pair[1]
    if reached > end_ns - start_ns:
        raise refused(f"the intervals reach {reached} ns, beyond the span of {end_ns - start_ns} ns")
