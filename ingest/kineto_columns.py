"""Lists of decoded values -> Arrow columns: numbers, ids as text, raw JSON as text; what does not fit is NULL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_INT64 = range(-(2**63), 2**63)


def integers(values: Sequence[Any]) -> Any:
    """int64, also from decimal text; NULL for what is no integer of 64 bits."""
    try:
        return pa.array(values, pa.int64())
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        return pa.array([_integer(value) for value in values], pa.int64())


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.removeprefix("-").isdigit():
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value in _INT64 else None


def texts(values: Sequence[Any]) -> Any:
    """Ids as text, numbers in plain decimals; NULL where there was none or an empty one."""
    try:
        return pa.array(values, pa.int64()).cast(pa.string())
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        return pa.array([_text(value) for value in values], pa.string())


def _text(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return None if value is None or value == "" else clean(str(value))


def clean(text: str) -> str:
    """The text with what UTF-8 cannot hold (lone surrogates of damaged escapes) replaced."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def names(values: Sequence[str | None]) -> Any:
    """Strings as they are."""
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowException, UnicodeEncodeError):
        return pa.array([None if value is None else clean(value) for value in values], pa.string())


def raw_texts(values: Sequence[Any]) -> Any:
    """Raw JSON as text without line breaks and indentation; NULL where it is absent, null or no UTF-8."""
    found = [str(raw, "utf-8", "replace") or None for raw in values]
    column = pa.array(found, pa.string())
    if pc.any(pc.match_substring(column, "\n")).as_py():
        column = pc.replace_substring_regex(column, r"\s*\n\s*", "")
    return pc.if_else(pc.equal(column, "null"), None, column)


def raw_string(raw: Any) -> str | None:
    """One raw JSON value: the content of a string, the text of anything else, None for null and for nothing."""
    if not raw:
        return None
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if value is None:
        return None
    return clean(value) if isinstance(value, str) else bytes(raw).decode("utf-8", "replace")


def first_of(*columns: Any) -> Any:
    """The first value that is not NULL, row by row."""
    columns = tuple(column for column in columns if column.null_count < len(column)) or columns[:1]
    return pc.coalesce(*columns) if len(columns) > 1 else columns[0]


def masked(values: Any, valid: Any) -> Any:
    """An int64 array that is NULL where ``valid`` is False."""
    return pa.array(values, pa.int64(), mask=~valid)


def codes(keys: Sequence[Any], known: dict[Any, int]) -> Any:
    """Numbers for keys, the same for the same key as long as ``known`` is kept."""
    distinct = set(keys)
    for key in distinct:
        known.setdefault(key, len(known))
    if len(distinct) == 1:
        return np.full(len(keys), known[keys[0]], np.int32)
    return np.array(list(map(known.__getitem__, keys)), np.int32)
