"""Run metadata, capture contract and comparison identity as typed JSON (protocol part 2), shared by the readers.

Only types are checked here. Whether the values are in their domain (blank ids, a contract that contradicts itself)
is a health question and left to the SQL layer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ..recorder.planes import INT64_MAX
from .contract import PlaneBatch, batch
from .source import source_name

Count = Annotated[int, Meta(ge=0, le=INT64_MAX)]
"""A non-negative integer that fits signed 64 bits."""

Coverage = Literal["none", "partial", "complete"]


class GradientKey(msgspec.Struct):
    """One expected parameter of a gradient manifest."""

    root: str
    key: str
    family: str


class GradientFamily(msgspec.Struct):
    """One family rule of a gradient contract."""

    family: str
    expectation: Literal["active", "inactive", "data_conditional"]
    min_present: Count


class GradientContract(msgspec.Struct):
    """Manifest digest, expected entries in order, and family rules (protocol 2.4)."""

    manifest_sha256: str
    expected: list[GradientKey]
    families: list[GradientFamily]


class CaptureContract(msgspec.Struct, kw_only=True):
    """What the producer asserts about the whole measured region (protocol 2.2)."""

    measurement_scope: Literal["unknown", "profiled_work", "production_equivalent"]
    operations: Coverage
    activations: Coverage = "none"
    tensors: Coverage = "none"
    gradients: Coverage = "none"
    logical_memory: Coverage
    physical_memory: Coverage
    device_timing: Coverage
    gradient_contract: GradientContract | None = None
    required_semantic_labels: list[str] = []
    gpu_expected_semantic_labels: list[str] = []
    cpu_only_semantic_labels: list[str] = []


class ComparisonIdentity(msgspec.Struct, kw_only=True):
    """What must agree before two runs may be compared (protocol 2.3)."""

    implementation_id: str | None = None
    workload_id: str
    model_id: str
    config_id: str
    data_id: str
    seed_policy: str
    physical_batch: Count
    accumulation_steps: Count
    precision: str
    device_state: str
    pair_id: str | None = None


class RunMetadata(msgspec.Struct, kw_only=True):
    """The metadata of one run (protocol 2.1)."""

    run_id: str
    correlation_id: str
    entrypoint: str
    phase: Literal["train", "infer"]
    timestamp: str
    capture_step: Count
    warmup_steps: Count
    device: str
    measured_region_device_synchronized: bool = False
    timing_mode: Literal["host", "device_synchronized"]
    capture_contract: CaptureContract
    comparison_identity: ComparisonIdentity | None = None
    tags: dict[str, str]
    candle_version: str | None = None


_OWN_FIELDS = RunMetadata.__struct_fields__


def run_batch(metadata: RunMetadata, *, path: Path, **provenance: Any) -> PlaneBatch:
    """The single row of the plane ``runs``.

    ``provenance`` gives the columns that are no run metadata: schema, source_format, source_digest, producer,
    outcome, terminal_timestamp_ns, failure_reason.
    """
    row = {name: msgspec.to_builtins(getattr(metadata, name)) for name in _OWN_FIELDS}
    row["tags"] = list(metadata.tags.items())
    return batch("runs", [{"seq": 0, "source_name": source_name(path), **row, **provenance}])
