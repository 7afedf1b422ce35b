"""Short ways to put spans, operations and memory events into a store, for the tests of timing and memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planewise.ingest.base import READERS
from support import TinyStore, emptied

DATA = Path(__file__).parent / "data"
BIG = 2**63 - 1
"""The largest integer of a plane."""


def example() -> TinyStore:
    """A store with the worked example of the protocol, as its reader reads it."""
    store = emptied()
    for batch in READERS["candle-trace"].read(DATA / "every-kind.jsonl"):
        store.insert(batch.plane, batch.table)
    return store


def expected(part: str) -> Any:
    """One part of the right values of the worked example."""
    return json.loads((DATA / "every-kind.expected.json").read_text(encoding="utf-8"))[part]


def span(store: TinyStore, id_: str, parent_id: str | None, start: int, duration: int | None, **values: Any) -> None:
    """Add one span; ``duration`` None leaves it open."""
    run_id = values.pop("run_id", "r1")
    row = {"id": id_, "parent_id": parent_id, "start_ns": start, "duration_ns": duration, **values}
    store.add("spans", row, run_id=run_id)


def op(store: TinyStore, span_id: str, start: int, duration: int, **values: Any) -> None:
    """Add one operation."""
    run_id = values.pop("run_id", "r1")
    row = {"span_id": span_id, "op_name": "f", "timestamp_ns": start, "duration_ns": duration, **values}
    store.add("ops", row, run_id=run_id)


def event(action: str, timestamp_ns: int, storage_id: str, size: int = 0, **values: Any) -> dict[str, Any]:
    """One memory event as a row."""
    base = {"device": "cpu", "tensor_id": storage_id, "span_id": "s1", "op_name": None, "category": "other"}
    row = {"timestamp_ns": timestamp_ns, "storage_id": storage_id, "bytes": size, "action": action}
    return {**base, **row, **values}


def alloc(timestamp_ns: int, storage_id: str, size: int = 0, **values: Any) -> dict[str, Any]:
    """One allocation of ``size`` bytes as a row."""
    return event("alloc", timestamp_ns, storage_id, size, **values)


def free(timestamp_ns: int, storage_id: str, size: int = 0, **values: Any) -> dict[str, Any]:
    """One free as a row."""
    return event("free", timestamp_ns, storage_id, size, **values)
