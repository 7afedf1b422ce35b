"""The columns read in bulk are those of the strict way, or nothing at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from planewise.ingest.lines import Block
from planewise.ingest.trace_bulk import read_bulk
from planewise.ingest.trace_rows import read_rows, read_strictly

EXAMPLE = (Path(__file__).parents[1] / "data" / "every-kind.jsonl").read_bytes()
LINES = EXAMPLE.splitlines()
SPACED = [json.dumps(json.loads(line)).encode() for line in LINES]
TOKENS = [
    b"null", b"true", b'"x"', b'"1"', b"1", b"0", b"-1", b"-0", b"-0.0", b"1.0", b"1e2", b"1e400", b"1e-400", b"NaN",
    b"0.1", b"5e-324", b"9223372036854775807", b"9223372036854775808", b"123456789012345678901234567890", b"01", b"[]",
    b"[1]", b"[null]", b"[1.0]", b'["a"]', b"[-1]", b"[4294967296,4294967296]", b"[4611686018427387904,2,0]", b"{}",
    b'"\\u0000"', b'"\\ud800"', b'"\\ud83d\\ude00"', b'"a\tb"', b'"\xc3\xa9"', b'"\xff"', b'"alloc"', b'"free"',
    b'"call"', b'"data"', b'" F32 "', b'"q4"', b'""', b'"a":1', b'"x"}\n{"kind":"op"',
]  # fmt: skip
"""What a mutation puts in place of a value: legal in some fields, illegal in others."""


def block(lines: list[bytes], first: int = 1) -> Block:
    return Block(first, b"\n".join(lines) + b"\n")


@pytest.mark.parametrize("lines", [LINES, SPACED, [*LINES[:5], *SPACED[5:]]], ids=["compact", "spaced", "mixed"])
def test_a_plain_writer_is_read_in_bulk_and_right(lines: list[bytes]):
    found = read_bulk(block(lines))
    assert found is not None
    assert [at for at, _ in found.framing] == [0, len(lines) - 1]
    assert sum(len(at) for at, _ in found.tables.values()) == len(lines) - 2
    check_same(block(lines))


def test_many_kinds_of_the_second_key_are_still_one_kind():
    ops = [{"kind": "op", name: "s"} | json.loads(OP) for name in ("span_id", "op_name", "dtype", "device")]
    lines = [json.dumps(op, separators=(",", ":")).encode() for op in ops]
    found = read_bulk(block(lines))
    assert found is not None
    [(at, table)] = found.tables.values()
    assert (at.tolist(), table.num_rows) == ([0, 1, 2, 3], 4)


def test_two_records_on_one_line_are_not_two_lines():
    assert read_bulk(block([LINES[1] + LINES[2], LINES[3]])) is None


def test_a_kind_that_begins_like_another_is_not_taken_for_it():
    memory = next(line for line in LINES if b'"device_memory"' in line)
    assert read_bulk(block([memory, memory])) is not None
    assert read_bulk(block([memory, memory.replace(b"device_memory", b"device_memories")])) is None


def test_an_extra_key_is_left_to_the_strict_way_and_kept_out():
    lines = [line.replace(b',"dtype"', b',"Dtype":"x","dtype"') for line in LINES if b'"kind":"op"' in line]
    assert read_bulk(block(lines)) is None
    assert read_rows(block(lines)).tables["ops"][1].num_rows == len(lines)


def spellings(record: dict[str, object], key: str) -> Iterator[bytes]:
    """The record with one value spelled in every way, its key left out, repeated, or with a capital beside it."""
    name = json.dumps(key).encode()
    parts = {one: json.dumps(one).encode() + b":" + json.dumps(value).encode() for one, value in record.items()}

    def text(*more: bytes, **changed: bytes) -> bytes:
        return b"{" + b",".join((*(parts | changed).values(), *more)) + b"}"

    for token in TOKENS:
        yield text(**{key: name + b":" + token})
    yield b"{" + b",".join(part for one, part in parts.items() if one != key) + b"}"
    for token in (b"null", b"1", b'"x"'):
        yield text(name + b":" + token)
        yield text(json.dumps(key.upper()).encode() + b":" + token)


FULLEST = {
    kind: max((json.loads(line) for line in LINES if json.loads(line)["kind"] == kind), key=len)
    for kind in sorted({json.loads(line)["kind"] for line in LINES})
}
MORE = {"op": {"timestamp_ns": 1, "output_dense_bytes": 2}, "tensor": {"dense_bytes": 3}, "gradient": {"norm": 0.5}}


@pytest.mark.parametrize("kind", FULLEST)
def test_every_spelling_of_every_value_is_read_as_the_strict_way_reads_it(kind: str):
    record = FULLEST[kind] | MORE.get(kind, {})
    plain = json.dumps(record, separators=(",", ":")).encode()
    read = 0
    for key in record:
        for line in spellings(record, key):
            # Between two plain ones: a fault must not hide behind the first line.
            read += check_same(block([plain, line, plain], 7))
    assert read >= (1 if kind == "meta" else 3 * len(record)), "the bulk way reads what is plain"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([*LINES, *SPACED]), min_size=1, max_size=20), st.booleans())
def test_any_order_of_lines_is_read_as_the_strict_way_reads_it(lines: list[bytes], last: bool):
    found = block(lines, 3)
    check_same(found if last else Block(3, found.data.removesuffix(b"\n")))


def check_same(found: Block) -> bool:
    """Hold the bulk way against the strict way; False when it declined."""
    if read_bulk(found) is None:
        return False
    strict, bulk = read_strictly(found), read_rows(found)
    assert [(line, str(fault.code), fault.field) for line, fault in bulk.faults] == [
        (line, str(fault.code), fault.field) for line, fault in strict.faults
    ]
    assert (bulk.records, list(bulk.lines), bulk.framing) == (strict.records, list(strict.lines), strict.framing)
    assert bulk.tables.keys() == strict.tables.keys()
    for plane, (at, table) in strict.tables.items():
        assert bulk.tables[plane][0].tolist() == at.tolist()
        same(bulk.tables[plane][1], table)
    assert (bulk.ends is None) == (strict.ends is None)
    if bulk.ends is not None and strict.ends is not None:
        assert bulk.ends[0].tolist() == strict.ends[0].tolist()
        same(bulk.ends[1], strict.ends[1])
    return True


def same(one: pa.Table, other: pa.Table) -> None:
    assert one.schema.equals(other.schema)
    # As text, so that -0.0 is not 0.0.
    assert repr(one.to_pylist()) == repr(other.to_pylist())


OP = next(line for line in LINES if b'"kind":"op"' in line)
