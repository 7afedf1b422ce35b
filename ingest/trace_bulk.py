"""Blocks of a trace as a plain writer writes them, straight into columns: no object per record.

Arrow's JSON reader parses the lines of each kind with the types of the protocol, in native code and without the
interpreter's lock. It alone is not strict enough (a missing key becomes NULL, ``1e999`` an infinity), so what it gives
is used only where it is certainly what :mod:`.trace_decode` would give; any doubt is answered with None, and the strict
way then reads the block, or says what is wrong with which line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from .domains import column_faults
from .lines import Block
from .strict_json import BadRecord
from .trace_decode import decode_strictly, is_plain_text
from .trace_events import DEFAULTS, EDGE_KEYS, Edge, Meta, Record, SpanEnd, Terminal
from .trace_tables import PLANE_OF, RECORD_SCHEMAS

_OPENING = b'{"kind":'
"""How every line begins; a space may follow."""
_TELLING = 8
"""The bytes of a kind, and of what follows it, that group lines; no two kinds share them."""

_MOST_GROUPS = 64
_KINDS: dict[str, type[Any]] = {kind.__struct_config__.tag: kind for kind in (*PLANE_OF, SpanEnd, Meta, Terminal)}
_LONGEST = max(map(len, _KINDS)) + 1


@dataclass(frozen=True)
class Bulk:
    """The records of a block: ``framing`` ones decoded, the others as a table a kind beside their positions."""

    framing: list[tuple[int, Record]]
    tables: dict[type[Any], tuple[npt.NDArray[np.int64], Any]]


def read_bulk(block: Block) -> Bulk | None:
    """The records of a block; None where the strict way must judge it."""
    ends = np.flatnonzero(_bytes(block.data) == ord("\n")) + 1
    if not block.data.endswith(b"\n"):
        ends = np.append(ends, len(block.data))
    offsets = np.concatenate(([0], ends))
    groups = _by_kind(block.data, offsets)
    if groups is None or not is_plain_text(block.data):
        return None
    found = Bulk([], {})
    lines = pa.BinaryArray.from_buffers(
        pa.binary(), len(ends), [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(block.data)]
    )
    for kind, rows in groups.items():
        picked = lines.take(pa.array(rows))
        if kind in (Meta, Terminal):
            try:
                found.framing.extend(zip(rows.tolist(), map(decode_strictly, picked.to_pylist()), strict=True))
            except BadRecord:
                return None
        elif (table := _table(kind, _text(picked), len(rows))) is not None:
            found.tables[kind] = (rows, table)
        else:
            return None
    found.framing.sort(key=lambda item: item[0])
    return found


def _by_kind(data: bytes, offsets: npt.NDArray[np.int64]) -> dict[type[Any], npt.NDArray[np.int64]] | None:
    """The lines of each kind by what they begin with; None where a line begins in another way."""
    text, begins = _bytes(data), offsets[:-1]
    spaced = _at(text, begins + len(_OPENING), 1)[:, 0] == ord(" ")
    names = begins + len(_OPENING) + spaced
    # A record that went on to the next line would hold an object there, which no field may: the parser refuses it. That
    # no line holds two records, the number of rows shows.
    if not ((_at(text, begins, len(_OPENING)) == _bytes(_OPENING)).all() and (_at(text, names, 1) == ord('"')).all()):
        return None
    heads = _at(text, names + 1, _LONGEST)
    telling = np.ascontiguousarray(heads[:, :_TELLING]).view(np.uint64).ravel()
    codes, first, code_of = np.unique(telling, return_index=True, return_inverse=True)
    if len(codes) > _MOST_GROUPS:
        return None
    tags = [heads[row].tobytes().partition(b'"')[0].decode(errors="replace") for row in first]
    groups: dict[type[Any], npt.NDArray[np.int64]] = {}
    for tag in sorted(set(tags)):
        rows = np.flatnonzero(np.isin(code_of, [code for code, name in enumerate(tags) if name == tag]))
        whole = _bytes(tag.encode() + b'"')
        if tag not in _KINDS or not (heads[rows, : len(whole)] == whole).all():
            return None
        groups[_KINDS[tag]] = rows
    return groups


def _at(text: npt.NDArray[np.uint8], places: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint8]:
    """A few bytes from each of these places; past the end the last one again."""
    return text.take(places[:, None] + np.arange(width), mode="clip")


def _bytes(text: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text, np.uint8)


def _text(picked: Any) -> bytes:
    """The taken lines as one text."""
    _, offsets, data = picked.buffers()
    ends = np.frombuffer(offsets, np.int32)[: len(picked) + 1]
    return data.slice(int(ends[0]), int(ends[-1] - ends[0])).to_pybytes()  # type: ignore[no-any-return]


def _table(kind: type[Any], text: bytes, rows: int) -> Any:
    """The columns of records of one kind with their defaults; None where one of them may break a rule."""
    fields = list(RECORD_SCHEMAS[kind])
    defaults = DEFAULTS.get(kind, {})
    # An absent key and an explicit null come out alike; only where the key may hold null are they the same.
    if b"null" in text and any(default is not None for default in defaults.values()):
        return None
    parsed = _parse(fields, text)
    if parsed is None or parsed.num_rows != rows:
        return None
    columns = [_column(parsed.column(field.name).combine_chunks(), field, defaults) for field in fields]
    if any(column is None for column in columns):
        return None
    table = pa.Table.from_arrays(columns, schema=RECORD_SCHEMAS[kind])
    fault = next(iter(column_faults(PLANE_OF.get(kind, ""), table)), None)
    return None if fault is not None or (kind is Edge and not _are_edges(table)) else table


def _parse(fields: list[Any], text: bytes) -> Any:
    loose = [(field.name, pa.list_(field.type.value_type) if _is_list(field) else field.type) for field in fields]
    try:
        return pyarrow.json.read_json(
            pa.BufferReader(text),
            pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            pyarrow.json.ParseOptions(pa.schema([("kind", pa.string()), *loose]), unexpected_field_behavior="error"),
        )
    except pa.ArrowException:
        return None


def _is_list(field: Any) -> bool:
    return pa.types.is_list(field.type)  # type: ignore[no-any-return]


def _column(found: Any, field: Any, defaults: dict[str, Any]) -> Any:
    """A column with its default in place of NULL; None where a NULL or a number that is none stands in it."""
    if found.null_count and field.name not in defaults:
        return None
    if _is_list(field):
        return _lists(found, field.type)
    if pa.types.is_floating(field.type) and not pc.all(pc.is_finite(found), min_count=0).as_py():
        return None
    default = defaults.get(field.name)
    return found if default is None else found.fill_null(default)


def _lists(found: Any, kind: Any) -> Any:
    """The lists of a column, an absent one empty."""
    lengths = pc.fill_null(pc.list_value_length(found), 0).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), found.flatten(), type=kind)


def _are_edges(edges: Any) -> bool:
    """True when every edge holds the keys of its kind and no others."""
    return all(
        edges.filter(pc.equal(edges["edge_kind"], edge_kind)).column(name).null_count == nulls
        for edge_kind, name, nulls in _expected_nulls(edges)
    )


def _expected_nulls(edges: Any) -> Iterator[tuple[str, str, int]]:
    for edge_kind, keys in EDGE_KEYS.items():
        rows = pc.sum(pc.equal(edges["edge_kind"], edge_kind)).as_py() or 0
        for name in edges.column_names[1:]:
            yield edge_kind, name, 0 if name in keys else rows
