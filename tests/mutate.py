"""Mutants of a byte string, for fuzzing readers: seeded, so that a failure can be seen again."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_JUNK = (
    *(b'"', b"\\", b"\n", b"\0", b"\xff\xfe", b"{", b"}", b"[", b"]", b",", b":", b"NaN", b"null", b"true", b"-"),
    *(b"[" * 3000, b'{"a":' * 3000, b"9" * 400, b"1e999999999", b"1e-400", b"-0", b"9223372036854775808"),
    *(b'"\\ud800"', b"\xed\xa0\x80", b"},{", b'"traceEvents":[', b'"ph":"X",', b"]}", b"\xef\xbb\xbf", b" " * 1000),
)


def mutant(data: bytes, rng: random.Random) -> bytes:
    """``data`` with one to four damages."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(_WAYS)(data, rng)
    return data


def _flip(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: _at(data, rng)]


def _remove(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + data[at + rng.choice((1, 1, 5, 50, 500)) :]


def _repeat(data: bytes, rng: random.Random) -> bytes:
    at, size = _at(data, rng), rng.choice((1, 10, 200, 2000))
    return data[:at] + data[at : at + size] * rng.choice((2, 2, 20)) + data[at + size :]


def _swap(data: bytes, rng: random.Random) -> bytes:
    low, high = sorted((_at(data, rng), _at(data, rng)))
    size = rng.choice((1, 20, 300))
    return (
        data[:low] + data[high : high + size] + data[low + size : high] + data[low : low + size] + data[high + size :]
    )


def _junk(data: bytes, rng: random.Random) -> bytes:
    at = _at(data, rng)
    return data[:at] + rng.choice(_JUNK) + data[at:]


def _number(data: bytes, rng: random.Random) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    chosen = rng.choice(found)
    return data[: chosen.start()] + rng.choice(_JUNK) + data[chosen.end() :]


def _at(data: bytes, rng: random.Random) -> int:
    return rng.randrange(len(data) + 1)


_WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _flip,
    _cut,
    _remove,
    _repeat,
    _swap,
    _junk,
    _number,
)
