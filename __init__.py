"""planewise: runtime evidence for training and inference.

The public names are imported when first used, so that ``import planewise`` in a training process loads the recorder
alone and never the analysis.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import infer as infer
    from .pipeline.capture_run import CaptureRun as CaptureRun
    from .pipeline.stores import open_store as open_store
    from .recorder.contract import CaptureContract as CaptureContract
    from .recorder.contract import ComparisonIdentity as ComparisonIdentity
    from .recorder.errors import ContractError as ContractError
    from .recorder.errors import PlanewiseError as PlanewiseError
    from .recorder.errors import RecordingError as RecordingError
    from .recorder.faults import RecordingWarning as RecordingWarning
    from .recorder.gradient_contract import ExpectedGradient as ExpectedGradient
    from .recorder.gradient_contract import GradientContract as GradientContract
    from .recorder.gradient_contract import GradientFamilyContract as GradientFamilyContract
    from .recorder.options import RecorderOptions as RecorderOptions
    from .recorder.profile_run import CaptureSelector as CaptureSelector
    from .recorder.profile_run import ProfileRun as ProfileRun
    from .recorder.samplers import NvmlSampler as NvmlSampler
    from .recorder.samplers import TorchAllocatorSampler as TorchAllocatorSampler
    from .recorder.session import TraceSession as TraceSession
    from .recorder.spans import SpanGuard as SpanGuard
    from .recorder.spans import SpanId as SpanId
    from .recorder.torch_events import CudaEventTimer as CudaEventTimer
    from .recorder.torch_modules import module_spans as module_spans
    from .recorder.torch_record import record_torch as record_torch
    from .recorder.torch_record import torch_contract as torch_contract
    from .recorder.torch_timing import timed_region as timed_region
    from .recorder.vocabulary import CoverageLevel as CoverageLevel
    from .recorder.vocabulary import EdgeKind as EdgeKind
    from .recorder.vocabulary import ExecutionStep as ExecutionStep
    from .recorder.vocabulary import GradientExpectation as GradientExpectation
    from .recorder.vocabulary import GradientState as GradientState
    from .recorder.vocabulary import MeasurementScope as MeasurementScope
    from .recorder.vocabulary import MemoryCategory as MemoryCategory
    from .recorder.vocabulary import Phase as Phase
    from .recorder.vocabulary import SpanKind as SpanKind
    from .recorder.vocabulary import TimingMode as TimingMode

__version__ = "0.1.0"

_HOMES = {
    "PlanewiseError": ".recorder.errors",
    "CaptureContract": ".recorder.contract",
    "CaptureSelector": ".recorder.profile_run",
    "ComparisonIdentity": ".recorder.contract",
    "ContractError": ".recorder.errors",
    "CoverageLevel": ".recorder.vocabulary",
    "EdgeKind": ".recorder.vocabulary",
    "ExecutionStep": ".recorder.vocabulary",
    "ExpectedGradient": ".recorder.gradient_contract",
    "GradientContract": ".recorder.gradient_contract",
    "GradientExpectation": ".recorder.vocabulary",
    "GradientFamilyContract": ".recorder.gradient_contract",
    "GradientState": ".recorder.vocabulary",
    "MeasurementScope": ".recorder.vocabulary",
    "MemoryCategory": ".recorder.vocabulary",
    "Phase": ".recorder.vocabulary",
    "ProfileRun": ".recorder.profile_run",
    "RecorderOptions": ".recorder.options",
    "RecordingError": ".recorder.errors",
    "RecordingWarning": ".recorder.faults",
    "SpanGuard": ".recorder.spans",
    "SpanId": ".recorder.spans",
    "SpanKind": ".recorder.vocabulary",
    "TimingMode": ".recorder.vocabulary",
    "TraceSession": ".recorder.session",
    "CudaEventTimer": ".recorder.torch_events",
    "NvmlSampler": ".recorder.samplers",
    "TorchAllocatorSampler": ".recorder.samplers",
    "module_spans": ".recorder.torch_modules",
    "record_torch": ".recorder.torch_record",
    "timed_region": ".recorder.torch_timing",
    "torch_contract": ".recorder.torch_record",
    "CaptureRun": ".pipeline.capture_run",
    "open_store": ".pipeline.stores",
}

_MODULES = ("infer",)

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(f".{name}", __name__)
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
