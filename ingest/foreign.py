"""What readers of foreign traces share: the run row of a trace that was not made for planewise, and its ledger.

A foreign trace states no contract. Its planes are sampled at best: coverage is ``partial`` where a plane has rows and
``none`` elsewhere, the measurement scope is ``unknown``, and what the trace does not say about its run is NULL. Every
record of the source has exactly one fate, and the ledger of the fates is a plane of its own (``ingest_counts``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .contract import PlaneBatch, batch
from .source import source_name

_COVERED_BY: Mapping[str, tuple[str, ...]] = {
    "operations": ("ops",),
    "activations": (),
    "tensors": ("tensors",),
    "gradients": ("gradients",),
    "logical_memory": ("memory_events",),
    "physical_memory": ("device_memory",),
    "device_timing": ("device_intervals",),
}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def foreign_run_id(path: Path, digest: str) -> str:
    """The run id of a foreign trace: the name of its file and the start of its content's digest."""
    stem = _UNSAFE.sub("-", path.absolute().name.split(".")[0]).strip("-") or "trace"
    return f"{stem[:60]}-{digest.removeprefix('sha256:')[:12]}"


@dataclass(frozen=True)
class ForeignRun:
    """What a foreign trace says about its run; None where it does not say.

    ``data_lost`` marks a trace of which a part could not be read: its run has no outcome, so it is never complete.
    ``host_clock_id`` names the clock of all host times; give device intervals the same ``clock_id`` only when the
    source itself puts both on one axis. ``link_keys`` are the source's own names of the ids that join records.
    """

    run_id: str
    schema: str
    source_format: str
    source_digest: str
    producer: str | None = None
    source_version: str | None = None
    time_unit: str | None = None
    host_clock_id: str | None = None
    link_keys: tuple[str, ...] = ()
    timestamp: str | None = None
    device: str | None = None
    rank: int | None = None
    world_size: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    data_lost: bool = False

    def batch(self, path: Path, rows: Mapping[str, int]) -> PlaneBatch:
        """The row of the plane ``runs``; ``rows`` are the rows written per plane, which decide the coverage."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__}
        lost = own.pop("data_lost")
        row = {
            **own,
            "seq": 0,
            "source_name": source_name(path),
            "correlation_id": self.run_id,
            "capture_contract": foreign_contract(rows),
            "tags": sorted(self.tags.items()),
            "link_keys": sorted(self.link_keys),
            "outcome": None if lost else "complete",
        }
        return batch("runs", [row])


def foreign_contract(rows: Mapping[str, int]) -> dict[str, Any]:
    """The capture contract that rows alone support: partial where a plane has rows, none elsewhere, scope unknown."""
    covered = {
        name: "partial" if any(rows.get(plane) for plane in planes) else "none" for name, planes in _COVERED_BY.items()
    }
    labels = ("required_semantic_labels", "gpu_expected_semantic_labels", "cpu_only_semantic_labels")
    return {"measurement_scope": "unknown", **covered, "gradient_contract": None, **{name: [] for name in labels}}


class Ledger:
    """Counts the fate of every record of a source: kept, repaired (kept after a stated repair) or dropped."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, str, str]] = Counter()

    def kept(self, file: str, kind: str, plane: str | None, records: int = 1) -> None:
        """Records that became rows of ``plane``; None for those that describe the run itself (metadata)."""
        self._counts[file, kind, "kept", plane or "", ""] += records

    def repaired(self, file: str, kind: str, plane: str | None, reason: str, records: int = 1) -> None:
        """Records kept after a repair; ``reason`` is its stable snake_case code."""
        self._counts[file, kind, "repaired", plane or "", reason] += records

    def dropped(self, file: str, kind: str, reason: str, records: int = 1) -> None:
        """Records that became no row; ``reason`` is a stable snake_case code."""
        self._counts[file, kind, "dropped", "", reason] += records

    def batches(self, run_id: str) -> Iterator[PlaneBatch]:
        """The ledger as one batch of ``ingest_counts``; nothing when the source had no record."""
        rows = [
            {
                "run_id": run_id,
                "seq": seq,
                "file": file,
                "kind": kind,
                "fate": fate,
                "plane": plane or None,
                "reason": reason or None,
                "records": records,
            }
            for seq, ((file, kind, fate, plane, reason), records) in enumerate(sorted(self._counts.items()))
            if records
        ]
        if rows:
            yield batch("ingest_counts", rows)
