"""The kinds of event of an inference run beside activities, each checked when made (correlation capture, part 2.2).

Every breach raises :class:`ContractError`, a ``ValueError``. None means "not recorded", in every field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from .infer_base import (
    CorrelationEvent,
    EntityRef,
    check_count,
    check_name,
    check_optional_name,
    check_ref,
    check_span,
    refused,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactIdentityEvent(CorrelationEvent):
    """An artifact, and when it was made (nanoseconds)."""

    event_type: ClassVar[str] = "infer.artifact"

    artifact_kind: str
    created_at_ns: int

    def __post_init__(self) -> None:
        CorrelationEvent.__post_init__(self)
        check_name("artifact_kind", self.artifact_kind)
        if self.created_at_ns is None:
            raise refused("created_at_ns is None, expected a whole number of 0 or more")
        check_count("created_at_ns", self.created_at_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEvent(CorrelationEvent):
    """A request as the server saw it; ``attempt_ref`` names one attempt at it."""

    event_type: ClassVar[str] = "infer.request"

    request_ref: EntityRef
    attempt_ref: EntityRef | None = None
    backend_request_ref: EntityRef | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    status: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    kv_bytes: int | None = None

    def __post_init__(self) -> None:
        CorrelationEvent.__post_init__(self)
        check_ref("request_ref", self.request_ref)
        check_ref("attempt_ref", self.attempt_ref, optional=True)
        check_ref("backend_request_ref", self.backend_request_ref, optional=True)
        check_span(self.start_ns, self.end_ns)
        check_optional_name("status", self.status)
        _check_sizes(self.input_tokens, self.output_tokens, self.kv_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationEvent(CorrelationEvent):
    """One iteration of the engine: a batch is scheduled and run."""

    event_type: ClassVar[str] = "infer.iteration"

    iteration_ref: EntityRef
    batch_ref: EntityRef | None = None
    start_ns: int | None = None
    end_ns: int | None = None

    def __post_init__(self) -> None:
        CorrelationEvent.__post_init__(self)
        check_ref("iteration_ref", self.iteration_ref)
        check_ref("batch_ref", self.batch_ref, optional=True)
        check_span(self.start_ns, self.end_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEvent(CorrelationEvent):
    """A named part of a request or of an iteration; at least one of the two is named."""

    event_type: ClassVar[str] = "infer.stage"

    stage_ref: EntityRef
    name: str
    request_ref: EntityRef | None = None
    iteration_ref: EntityRef | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    kv_bytes: int | None = None

    def __post_init__(self) -> None:
        CorrelationEvent.__post_init__(self)
        check_ref("stage_ref", self.stage_ref)
        check_name("name", self.name)
        check_ref("request_ref", self.request_ref, optional=True)
        check_ref("iteration_ref", self.iteration_ref, optional=True)
        if self.request_ref is None and self.iteration_ref is None:
            raise refused("a stage names neither request_ref nor iteration_ref, expected at least one")
        check_span(self.start_ns, self.end_ns)
        _check_sizes(self.input_tokens, self.output_tokens, self.kv_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipEvent(CorrelationEvent):
    """A request took part in an iteration, in a role such as prefill or decode."""

    event_type: ClassVar[str] = "infer.membership"

    request_ref: EntityRef
    iteration_ref: EntityRef
    role: str
    attempt_ref: EntityRef | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    kv_bytes: int | None = None

    def __post_init__(self) -> None:
        CorrelationEvent.__post_init__(self)
        check_ref("request_ref", self.request_ref)
        check_ref("iteration_ref", self.iteration_ref)
        check_name("role", self.role)
        check_ref("attempt_ref", self.attempt_ref, optional=True)
        _check_sizes(self.input_tokens, self.output_tokens, self.kv_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityEvent(CorrelationEvent):
    """What a component can do, was told to do and did; all three are empty when it was not there."""

    event_type: ClassVar[str] = "infer.capabilities"

    component: str
    available: bool
    supported: list[str] = field(default_factory=list)
    enabled: list[str] = field(default_factory=list)
    collected: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        CorrelationEvent.__post_init__(self)
        check_name("component", self.component)
        if type(self.available) is not bool:
            raise refused(f"available is {self.available!r:.80}, expected a bool")
        check_capabilities(self.supported, self.enabled, self.collected, list)
        if not self.available and (self.supported or self.enabled or self.collected):
            raise refused("a component that is not available has no capabilities")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockAlignmentEvent(CorrelationEvent):
    """A time of one clock plus ``offset_ns`` is that of the other, within ``uncertainty_ns``, while it is valid."""

    event_type: ClassVar[str] = "infer.clock_alignment"

    from_clock_domain: str
    to_clock_domain: str
    offset_ns: int
    uncertainty_ns: int
    valid_from_ns: int | None = None
    valid_to_ns: int | None = None

    def __post_init__(self) -> None:
        CorrelationEvent.__post_init__(self)
        check_name("from_clock_domain", self.from_clock_domain)
        check_name("to_clock_domain", self.to_clock_domain)
        if type(self.offset_ns) is not int:
            raise refused(f"offset_ns is {self.offset_ns!r:.80}, expected a whole number")
        if self.uncertainty_ns is None:
            raise refused("uncertainty_ns is None, expected a whole number of 0 or more")
        check_count("uncertainty_ns", self.uncertainty_ns)
        check_span(self.valid_from_ns, self.valid_to_ns)


def check_capabilities(supported: object, enabled: object, collected: object, kind: type) -> None:
    """Three collections of ``kind`` with names that do not repeat: collected is among enabled, that among supported."""
    for title, names in (("supported", supported), ("enabled", enabled), ("collected", collected)):
        if not isinstance(names, kind):
            raise refused(f"{title} is a {type(names).__name__}, expected a {kind.__name__}")
        for name in names:  # type: ignore[attr-defined]
            check_name(title, name)
        if len(set(names)) != len(names):  # type: ignore[arg-type, call-overload]
            raise refused(f"{title} repeats a name")
    if not set(collected) <= set(enabled) <= set(supported):  # type: ignore[call-overload]
        raise refused("collected must be among enabled, and enabled among supported")


def _check_sizes(input_tokens: object, output_tokens: object, kv_bytes: object) -> None:
    check_count("input_tokens", input_tokens)
    check_count("output_tokens", output_tokens)
    check_count("kv_bytes", kv_bytes)
