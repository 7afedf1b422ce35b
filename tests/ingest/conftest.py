"""Helpers of the ingest tests: literal traces in, rows per plane out."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from planewise.ingest.base import READERS
from planewise.recorder.errors import InputRefused

DATA = Path(__file__).parents[1] / "data"

META: dict[str, Any] = {
    "kind": "meta",
    "schema": "candle-graph/trace/10",
    "run_id": "r1",
    "correlation_id": "demo/update-3",
    "entrypoint": "demo",
    "phase": "infer",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "capture_step": 3,
    "warmup_steps": 2,
    "device": "cpu",
    "timing_mode": "host",
    "capture_contract": {
        "measurement_scope": "unknown",
        "operations": "none",
        "logical_memory": "none",
        "physical_memory": "none",
        "device_timing": "none",
    },
    "tags": {},
}
TERMINAL: dict[str, Any] = {"kind": "terminal", "outcome": "complete", "timestamp_ns": 2**63 - 1}

Planes = dict[str, list[dict[str, Any]]]


def read_planes(reader: str, path: Path) -> Planes:
    """Every row of a source, by plane."""
    planes: Planes = defaultdict(list)
    for batch in READERS[reader].read(path):
        planes[batch.plane] += batch.table.to_pylist()
    return planes


class TraceFiles:
    """Writes literal traces; a record is a dict or a raw JSON line."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "t.jsonl"

    def write(self, records: Iterable[Any]) -> Path:
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        self.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", errors="surrogatepass")
        return self.path

    def rows(self, *records: Any, meta: dict[str, Any] | None = None) -> Planes:
        """The planes of a trace of these records between a meta and a terminal record."""
        return read_planes("candle-trace", self.write([META | (meta or {}), *records, TERMINAL]))

    def refusal(self, *records: Any) -> InputRefused:
        """How a trace of exactly these records is refused."""
        path = self.write(records)
        with pytest.raises(InputRefused) as caught:
            read_planes("candle-trace", path)
        assert caught.value.source == str(path)
        return caught.value

    def refusal_of(self, *records: Any) -> InputRefused:
        """How a trace of these records between a meta (line 1) and a terminal record is refused."""
        return self.refusal(META, *records, TERMINAL)


@pytest.fixture
def trace(tmp_path: Path) -> TraceFiles:
    return TraceFiles(tmp_path)


@pytest.fixture
def read() -> Callable[[str, Path], Planes]:
    return read_planes


@pytest.fixture
def every_kind() -> Path:
    return DATA / "every-kind.jsonl"
