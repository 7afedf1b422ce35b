"""Digests of Arrow columns, 64 bits a row, equal in every process and version: what an append is recognised by.

Digests in the standard library take one row at a time, which is most of what an append would cost; those of DuckDB and
Polars may change with their version. This is multilinear hashing with fixed weights: equal rows have equal digests,
and different ones meet by chance once in 2**56 pairs or less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NULL = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 1 << 21
"""Bytes that are weighed at once; each takes 24 bytes of memory meanwhile."""


def mixed(values: Any) -> Any:
    """The finaliser of splitmix64 over an array of 64 bits."""
    values = values ^ (values >> np.uint64(30))
    values = values * np.uint64(0xBF58476D1CE4E5B9)
    values = values ^ (values >> np.uint64(27))
    values = values * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def column_digests(column: Any) -> Any:
    """One digest per value of a column of strings or of whole numbers, also coded ones; NULL has its own."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        return _coded(array)
    if pa.types.is_string(array.type):
        found = _strings(array)
    else:
        filled = pc.fill_null(array.cast(pa.int64()), 0)
        found = mixed(filled.to_numpy(zero_copy_only=False).view(np.uint64) + np.uint64(1))
    if array.null_count:
        found[array.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return found


def _coded(array: Any) -> Any:
    if not len(array.dictionary):
        return np.full(len(array), _NULL)
    found = column_digests(array.dictionary)[pc.fill_null(array.indices, 0).to_numpy()]
    found[array.indices.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return found


def row_digests(columns: list[Any]) -> Any:
    """One digest per row over several columns, in their order."""
    total = column_digests(columns[0])
    for column in columns[1:]:
        total = mixed(total + _NULL) ^ column_digests(column)
    return mixed(total)


def _strings(array: Any) -> Any:
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = array.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    sums, first = np.zeros(len(array), np.uint64), 0
    while first < len(array):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _BLOCK, "right")) - 1)
        sums[first:last] = _weighed(content, offsets[first : last + 1])
        first = last
    return mixed(sums ^ (np.diff(offsets).astype(np.uint64) * _NULL))


def _weighed(content: Any, offsets: Any) -> Any:
    """For each string, the sum of its bytes times the weights of their places."""
    lengths = np.diff(offsets)
    sums = np.zeros(len(lengths), np.uint64)
    filled = lengths > 0
    if not filled.any():
        return sums
    places = np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], lengths)
    weights = mixed(np.arange(1, int(lengths.max()) + 1, dtype=np.uint64) * _NULL)
    products = weights[places] * (content[offsets[0] : offsets[-1]].astype(np.uint64) + np.uint64(1))
    sums[filled] = np.add.reduceat(products, (offsets[:-1] - offsets[0])[filled])
    return sums
