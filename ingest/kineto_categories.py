"""The classes of a PyTorch profiler trace, as data: what each category of the trace is, and on which device.

The names are those of libkineto's activity types and of the profiler's own host events, with the capitalised names of
2021. Nothing is guessed from a name: a category that is not in the table is unknown, kept out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

CATEGORIES_VERSION = 1
"""Raised when a category changes its role or its device; written into the tags of each run."""


@dataclass(frozen=True)
class Category:
    """What the complete events of one category are.

    Attributes
    ----------
    role:
        ``span``, ``python_function``, ``op``, ``launch``, ``device``, ``counter`` (a range whose arguments are
        counter values), ``profile`` (the profiler's own frame around the trace) or ``out`` (known, and no row of any
        plane).
    device:
        Torch's name of the device type of device work; None where the trace has to say it by other means.
    reason:
        Why events of an ``out`` category become no row.
    """

    role: str
    device: str | None = None
    reason: str | None = None


_OP, _SPAN, _LAUNCH, _DEVICE = Category("op"), Category("span"), Category("launch"), Category("device")

CATEGORIES: Mapping[str, Category] = MappingProxyType(
    {
        "cpu_op": _OP,
        "Operator": _OP,
        "user_annotation": _SPAN,
        "python_function": Category("python_function"),
        "cuda_runtime": _LAUNCH,
        "cuda_driver": _LAUNCH,
        "Runtime": _LAUNCH,
        "hip_runtime": _LAUNCH,
        "hip_driver": _LAUNCH,
        "xpu_runtime": _LAUNCH,
        "xpu_driver": _LAUNCH,
        "mtia_runtime": _LAUNCH,
        "glow_runtime": _LAUNCH,
        "privateuse1_runtime": _LAUNCH,
        "privateuse1_driver": _LAUNCH,
        "kernel": _DEVICE,
        "gpu_memcpy": _DEVICE,
        "gpu_memset": _DEVICE,
        "Kernel": _DEVICE,
        "Memcpy": _DEVICE,
        "Memset": _DEVICE,
        "mtia_ccp_events": Category("device", "mtia"),
        "cuda_profiler_range": Category("counter"),
        "Trace": Category("profile"),
        "gpu_user_annotation": Category("out", reason="device_annotation"),
        "mtia_insight": Category("out", reason="device_annotation"),
        "cuda_sync": Category("out", reason="synchronization"),
        "cuda_event": Category("out", reason="synchronization"),
        "xpu_sync": Category("out", reason="synchronization"),
        "overhead": Category("out", reason="profiler_overhead"),
        "external_correlation": Category("out", reason="profiler_overhead"),
    }
)

WAITS = frozenset({("mtia_ccp_events", "event_wait"), ("mtia_ccp_events", "event_record")})
"""Category and name of device events that wait or signal and do no work: out, as ``synchronization``."""

DEVICE_OF_RUNTIME: Mapping[str, str] = MappingProxyType(
    {"xpu_runtime": "xpu", "xpu_driver": "xpu", "privateuse1_runtime": "privateuseone"}
)
"""Torch's device type of ``kernel``, ``gpu_memcpy`` and ``gpu_memset``, which every back end shares, by the runtime
the same trace was launched through; ``cuda`` elsewhere, which is also torch's name of ROCm devices."""

DEVICE_TYPES: tuple[str, ...] = (
    *("cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla", "vulkan", "metal", "xpu"),
    *("mps", "meta", "hpu", "ve", "lazy", "ipu", "mtia", "privateuseone"),
)
"""Torch's device types, by the number that memory events give."""
