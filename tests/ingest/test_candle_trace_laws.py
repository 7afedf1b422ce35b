"""Laws of the trace reader: what is written is read, what is cut is refused, and no input escapes the error family."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planewise.recorder.errors import InputRefused

from .conftest import DATA, META, read_planes

COUNTS = st.one_of(st.integers(0, 2**31), st.integers(2**53, 2**62 - 1))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['":', " a", "\\", "cuda:0", "-0,"]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SHAPES = st.lists(st.integers(0, 9), max_size=3)
CATEGORIES = st.sampled_from(["parameter", "activation", "gradient", "optimizer", "other"])


def record(kind: str, need: dict[str, Any], may: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"kind": st.just(kind), **need}, optional=may)


PLANE_OF = {"op": "ops", "tensor": "tensors", "memory": "memory_events", "device_memory": "device_memory"}
PLANE_OF |= {"device_interval": "device_intervals", "gradient": "gradients", "edge": "edges"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "op": {"inputs": [], "timestamp_ns": 0},
    "tensor": {"requires_grad": False, "category": "other"},
    "memory": {"shape": [], "category": "other"},
}
RECORDS = st.one_of(
    record(
        "op",
        {"span_id": TEXTS, "op_name": TEXTS, "shape": SHAPES, "dtype": TEXTS, "device": TEXTS, "duration_ns": COUNTS,
         "input_dense_bytes": COUNTS, "output_dense_bytes": COUNTS},
        {"inputs": st.lists(TEXTS, max_size=2), "output": TEXTS | st.none(), "timestamp_ns": COUNTS},
    ),
    record(
        "tensor",
        {"span_id": TEXTS, "tensor_id": TEXTS, "shape": SHAPES, "dtype": TEXTS, "device": TEXTS, "dense_bytes": COUNTS},
        {"label": TEXTS | st.none(), "requires_grad": st.booleans(), "category": CATEGORIES},
    ),
    record(
        "memory",
        {"timestamp_ns": COUNTS, "storage_id": TEXTS, "tensor_id": TEXTS, "span_id": TEXTS, "device": TEXTS,
         "bytes": COUNTS, "action": st.sampled_from(["alloc", "free"]), "dtype": TEXTS},
        {"op_name": TEXTS | st.none(), "shape": SHAPES, "category": CATEGORIES},
    ),
    record(
        "device_memory",
        {"timestamp_ns": COUNTS, "device": TEXTS},
        {name: COUNTS | st.none() for name in ("used_bytes", "free_bytes", "reserved_bytes", "capacity_bytes")},
    ),
    record(
        "device_interval",
        {"span_id": TEXTS, "device": TEXTS, "stream_id": TEXTS, "clock_id": TEXTS, "backend": TEXTS,
         "start_ns": COUNTS, "duration_ns": COUNTS},
        {},
    ),
    record(
        "gradient",
        {"event_id": TEXTS, "root": TEXTS, "key": TEXTS,
         "state": st.sampled_from(["present", "missing", "zero", "non_finite"])},
        {"norm": FLOATS | st.none()},
    ),
    record(
        "edge",
        {"edge_kind": st.just("call"), "from_span": TEXTS, "to_span": TEXTS, "host_duration_ns": COUNTS},
        {},
    ),
)  # fmt: skip
SPANS = st.lists(
    st.tuples(TEXTS, COUNTS, st.none() | COUNTS, st.none() | st.sampled_from(["forward", "backward", "optimizer"])),
    unique_by=lambda span: span[0],
    max_size=5,
)
NOISE = st.fixed_dictionaries(
    {}, optional={"extra key": TEXTS | st.lists(FLOATS, max_size=2), "nested": st.just({"id": 1})}
)


def expected_row(source: dict[str, Any], columns: Any) -> dict[str, Any]:
    return {name: DEFAULTS.get(source["kind"], {}).get(name) for name in columns} | {
        name: value for name, value in source.items() if name in columns
    }


@given(st.lists(st.tuples(RECORDS, NOISE), max_size=12), SPANS, st.randoms(use_true_random=False), st.booleans())
def test_any_valid_trace_is_read_back_row_for_row(records, spans, rng, compact):
    starts = [
        {"kind": "span_start", "id": i, "name": i, "start_ns": s, "span_kind": "op", "step": t} for i, s, _, t in spans
    ]
    ends = [{"kind": "span_end", "id": i, "duration_ns": d} for i, _, d, _ in spans if d is not None]
    rng.shuffle(ends)
    body = [*starts, *(source | noise for source, noise in records), *ends]
    lines = [META, *body, {"kind": "terminal", "outcome": "complete", "timestamp_ns": 2**63 - 1}]
    separators = (",", ":") if compact else (", ", ": ")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        path.write_text(
            "\n".join(json.dumps(line, separators=separators, ensure_ascii=compact) for line in lines), "utf-8"
        )
        planes = read_planes("candle-trace", path)
    for plane in PLANE_OF.values():
        found = planes.get(plane, [])
        sources = [(seq, source) for seq, source in enumerate(body, 1) if PLANE_OF.get(source["kind"]) == plane]
        assert [row.pop("seq") for row in found] == [seq for seq, _ in sources]
        assert {row.pop("run_id") for row in found} <= {"r1"}
        for row, (_, source) in zip(found, sources, strict=True):
            assert row == expected_row(source, row)
    joined = [(row["id"], row["start_ns"], row["duration_ns"], row["step"]) for row in planes.get("spans", [])]
    assert joined == spans


def refused_or_read(content: bytes, path: Path) -> bool:
    """True when refused with a position, False when read; anything else passes through and fails the test."""
    path.write_bytes(content)
    try:
        read_planes("candle-trace", path)
    except InputRefused as error:
        return bool(error.position)
    return False


def test_truncation_at_every_byte_is_refused(tmp_path):
    content = (DATA / "every-kind.jsonl").read_bytes()
    path = tmp_path / "t"
    whole = len(content.rstrip(b"\n"))
    for size in range(whole):
        assert refused_or_read(content[:size], path), size
    assert not refused_or_read(content[:whole], path)


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bytes_never_escape_the_error_family(tmp_path, seed):
    content = (DATA / "every-kind.jsonl").read_bytes()
    rng = random.Random(seed)
    refused = 0
    for _ in range(150):
        broken = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        refused += refused_or_read(bytes(broken), tmp_path / "t")
    assert refused > 50


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(content):
    with tempfile.TemporaryDirectory() as folder:
        assert refused_or_read(content, Path(folder) / "t")
