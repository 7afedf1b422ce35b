"""A tiny in-memory store for tests of the SQL layer: literal rows in, query results out."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from planewise.pipeline.views import create_input_tables, create_views, inputs

CONTRACT: dict[str, Any] = {
    "measurement_scope": "production_equivalent",
    "operations": "none",
    "activations": "none",
    "tensors": "none",
    "gradients": "none",
    "logical_memory": "none",
    "physical_memory": "none",
    "device_timing": "none",
    "gradient_contract": None,
    "required_semantic_labels": [],
    "gpu_expected_semantic_labels": [],
    "cpu_only_semantic_labels": [],
}

IDENTITY: dict[str, Any] = {
    "implementation_id": "git:0001",
    "workload_id": "train-step",
    "model_id": "tiny",
    "config_id": "c0",
    "data_id": "d0",
    "seed_policy": "fixed-1",
    "physical_batch": 4,
    "accumulation_steps": 1,
    "precision": "f32",
    "device_state": "exclusive",
    "pair_id": None,
}

DEFAULTS: dict[str, dict[str, Any]] = {
    "runs": {
        "schema": "candle-graph/trace/10",
        "source_format": "candle-trace",
        "source_name": "t.jsonl",
        "source_digest": "sha256:" + "0" * 64,
        "correlation_id": "demo/update-3",
        "entrypoint": "demo",
        "phase": "infer",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "capture_step": 3,
        "warmup_steps": 2,
        "device": "cpu",
        "measured_region_device_synchronized": False,
        "timing_mode": "host",
        "capture_contract": CONTRACT,
        "tags": [],
        "outcome": "complete",
        "terminal_timestamp_ns": 2**62,
    },
    "spans": {"name": "span", "start_ns": 0, "span_kind": "function", "measured": False},
    "ops": {"inputs": [], "shape": [], "dtype": "f32", "device": "cpu", "timestamp_ns": 0, "input_dense_bytes": 0},
    "tensors": {"shape": [], "dtype": "f32", "device": "cpu", "requires_grad": False, "category": "other"},
    "tensor_stats": {"shape": [], "dtype": "f32", "elements": 1, "non_finite": 0},
    "memory_events": {"device": "cpu", "tensor_id": "t", "shape": [], "dtype": "f32", "category": "other"},
    "device_memory": {"device": "cuda:0"},
    "device_intervals": {"device": "cuda:0", "stream_id": "0", "clock_id": "c", "backend": "b"},
    "cohort_members": {"verified": True},
}


class TinyStore:
    """Every input table empty and every view loaded; ``add`` inserts literal rows with defaults for what they omit.

    ``seq`` counts up over all planes in the order of the calls, as it would in one stream.
    """

    def __init__(self) -> None:
        self.con = duckdb.connect()
        create_input_tables(self.con)
        create_views(self.con)
        self._seq = 0

    def add(self, table: str, *rows: dict[str, Any], run_id: str = "r1") -> TinyStore:
        """Insert rows; absent columns take DEFAULTS, else NULL; run_id and seq are filled in."""
        declared = inputs()[table]
        filled = []
        for row in rows:
            values = {"run_id": run_id, "seq": self._seq, **DEFAULTS.get(table, {}), **row}
            unknown = values.keys() - set(declared.column_names) - {"seq", "run_id"}
            assert not unknown, f"{table} has no column {sorted(unknown)}"
            filled.append({name: values.get(name) for name in declared.column_names})
            self._seq += 1
        return self.insert(table, pa.Table.from_pylist(filled, schema=declared.schema))

    def insert(self, table: str, rows: pa.Table) -> TinyStore:
        """Append an Arrow table."""
        self.con.register("_rows", rows)
        self.con.execute(f'INSERT INTO "{table}" FROM _rows')
        self.con.unregister("_rows")
        return self

    def clear(self) -> TinyStore:
        """Delete every row; ``seq`` starts again."""
        self.con.execute("; ".join(f'DELETE FROM "{table}"' for table in inputs()))
        self._seq = 0
        return self

    def run(self, run_id: str = "r1", *, contract: dict[str, Any] | None = None, **values: Any) -> TinyStore:
        """Add one run; ``contract`` overrides members of CONTRACT."""
        return self.add("runs", {"capture_contract": {**CONTRACT, **(contract or {})}, **values}, run_id=run_id)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self.con.execute(query).fetchall()


@cache
def _shared() -> TinyStore:
    return TinyStore()


def emptied() -> TinyStore:
    """The one store that all tests share, without a row: making its views costs more than most tests do."""
    return _shared().clear()
