"""The closed vocabularies of a capture: a member's value is its spelling in records and headers (protocol 1.2, 2)."""

from __future__ import annotations

from enum import StrEnum


class CoverageLevel(StrEnum):
    """How much of a plane the producer asserts for the whole measured region (guide 2)."""

    NONE = "none"
    """The producer did not attempt this evidence."""
    PARTIAL = "partial"
    """A deliberate sample."""
    COMPLETE = "complete"
    """Everything in scope is represented."""


class MeasurementScope(StrEnum):
    """What the measured work stands for (guide 2)."""

    UNKNOWN = "unknown"
    """Representativeness was not established."""
    PROFILED_WORK = "profiled_work"
    """Valid diagnostic work, not claimed equivalent to production."""
    PRODUCTION_EQUIVALENT = "production_equivalent"
    """The workload conditions of a normal run; needed for an eligible timing comparison."""


class Phase(StrEnum):
    """Whether the captured invocation trains or infers."""

    TRAIN = "train"
    INFER = "infer"


class TimingMode(StrEnum):
    """What a span's wall interval stands for (guide 4)."""

    HOST = "host"
    """Host wall time; on an asynchronous device often only the launch."""
    DEVICE_SYNCHRONIZED = "device_synchronized"
    """Every semantic span is bounded by device synchronisations."""


class SpanKind(StrEnum):
    """Classification of a span."""

    FUNCTION = "function"
    OP = "op"
    """A span dedicated to one operation."""
    MODULE = "module"


class ExecutionStep(StrEnum):
    """The part of a training step that a span belongs to."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


class MemoryCategory(StrEnum):
    """What a tensor or storage is for."""

    PARAMETER = "parameter"
    ACTIVATION = "activation"
    GRADIENT = "gradient"
    OPTIMIZER = "optimizer"
    OTHER = "other"


class GradientState(StrEnum):
    """What was found of one parameter's gradient (protocol 8.1)."""

    PRESENT = "present"
    """A finite norm above zero."""
    MISSING = "missing"
    """No gradient; it has no norm."""
    ZERO = "zero"
    """A norm of exactly +0.0."""
    NON_FINITE = "non_finite"
    """The norm is NaN or infinite, and is not recorded."""


class GradientExpectation(StrEnum):
    """What a parameter family must show (guide 7)."""

    ACTIVE = "active"
    """At least ``min_present`` members are present."""
    INACTIVE = "inactive"
    """Every member is missing."""
    DATA_CONDITIONAL = "data_conditional"
    """All may be absent; once one is present, at least ``min_present`` are."""


class EdgeKind(StrEnum):
    """Whether an edge links two spans or two tensors."""

    CALL = "call"
    DATA = "data"


class Outcome(StrEnum):
    """How a session ended; a capture without a terminal record was interrupted and has none."""

    COMPLETE = "complete"
    FAILED = "failed"
