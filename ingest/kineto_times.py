"""Decimal microseconds as the trace wrote them -> integer nanoseconds, never through a float."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

LIMIT_NS = 2**63 - 1
_PLAIN = re.compile(rb'\A"?(-?)([0-9]{1,16})(?:\.([0-9]*))?"?\Z')
_ANY = re.compile(rb'\A"?\s*([-+]?)([0-9]+)(?:\.([0-9]*))?(?:[eE]([-+]?[0-9]{1,4}))?\s*"?\Z')


@dataclass(frozen=True)
class Times:
    """Nanoseconds of a column of literals.

    Attributes
    ----------
    ns:
        int64; 0 where ``valid`` is False.
    valid:
        False where there was no literal, no number, or one outside int64 nanoseconds.
    repaired:
        True where digits below a nanosecond were not zero and were cut off, toward zero.
    """

    ns: Any
    valid: Any
    repaired: Any


def nanoseconds(literals: Sequence[Any]) -> Times:
    """Parse JSON literals (numbers or strings; empty where absent), each a microsecond count.

    Literals of equal length in plain notation are parsed column by column; anything else one by one.
    """
    joined = b"\n".join(literals) + b"\n" if len(literals) else b""
    data = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(data == 10)
    if len(ends) != len(literals):  # A literal with a line break in it: no number, but it may not shift the others.
        return _one_by_one([bytes(literal) for literal in literals])
    starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
    times = Times(*(np.zeros(len(ends), kind) for kind in (np.int64, bool, bool)))
    lengths = ends - starts
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        _equal_lengths(data, starts[rows], int(length), rows, times)
    return times


def _equal_lengths(data: Any, starts: Any, length: int, rows: Any, into: Times) -> None:
    """Parse literals of one length; those whose point is elsewhere than in most fall back to one by one."""
    if not length:
        return
    cells = data[starts[:, None] + np.arange(length)] if length <= 24 else None
    point = _point(cells) if cells is not None else None
    if cells is None or point is None:
        _fill(data, starts, length, rows, into)
        return
    plain = _digits_but(cells, point)
    digits = np.delete(cells, point, axis=1) if point < length else cells
    whole, kept = point, digits[:, : point + 3].astype(np.int64) - 48
    ns = np.zeros(len(rows), np.int64)
    for place in range(kept.shape[1]):
        ns = ns * 10 + kept[:, place]
    ns *= 10 ** max(0, whole + 3 - kept.shape[1])
    into.ns[rows] = np.where(plain, ns, 0)
    into.valid[rows] = plain
    into.repaired[rows] = plain & (digits[:, point + 3 :] != 48).any(axis=1)
    if not plain.all():
        odd = np.flatnonzero(~plain)
        _fill(data, starts[odd], length, rows[odd], into)


def _point(cells: Any) -> int | None:
    """Where the point of the first literal is, its length without one; None where 16 digits before it may overflow."""
    first = cells[0].tobytes()
    at = first.find(b".")
    at = len(first) if at < 0 else at
    return at if 0 < at <= 15 or (at == 16 and first[0] < 57) else None


def _digits_but(cells: Any, point: int) -> Any:
    """Which literals have digits everywhere and a point where it is expected; a leading 9 of 16 is left to the exact
    way."""
    good = cells - 48 < 10  # Bytes wrap, so one comparison does for both ends.
    if point < cells.shape[1]:
        good[:, point] = cells[:, point] == 46
    if point == 16:
        good[:, 0] &= cells[:, 0] < 57
    return good.all(axis=1)


def _fill(data: Any, starts: Any, length: int, rows: Any, into: Times) -> None:
    raw = data.tobytes() if len(rows) > 64 else None
    for start, row in zip(starts.tolist(), rows.tolist(), strict=True):
        literal = raw[start : start + length] if raw else data[start : start + length].tobytes()
        into.ns[row], into.valid[row], into.repaired[row] = _exact(literal)


def _one_by_one(literals: Sequence[bytes]) -> Times:
    times = Times(*(np.zeros(len(literals), kind) for kind in (np.int64, bool, bool)))
    for row, literal in enumerate(literals):
        times.ns[row], times.valid[row], times.repaired[row] = _exact(literal)
    return times


def _exact(literal: bytes) -> tuple[int, bool, bool]:
    """One literal in any notation: nanoseconds, whether it is one, whether digits were cut off."""
    found = _ANY.match(literal)
    if not found:
        return 0, False, False
    sign, whole, part, exponent = found.groups()
    digits, shift = (whole + (part or b"")).lstrip(b"0"), 3 - len(part or b"") + int(exponent or 0)
    if not digits:
        return 0, True, False
    if len(digits) + shift > 19:
        return 0, False, False
    if shift >= 0:
        ns, rest = int(digits) * 10**shift, b""
    else:
        ns, rest = int(digits[:shift] or b"0"), digits[shift:]
    if ns > LIMIT_NS:
        return 0, False, False
    return (-ns if sign == b"-" else ns), True, bool(rest.strip(b"0"))
