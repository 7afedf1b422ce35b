"""What typed decoding alone lets through, and how a refusal is put into words.

msgspec checks types, ranges, UTF-8 in known values, surrogates and the grammar. It keeps the last of two equal keys,
reads ``-0`` as 0 in a float field, and does not look at the numbers of keys it does not know. These are found here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

_NEGATIVE_ZERO = re.compile(rb"-0(?<=[:\[,\s]-0)(?=[\s,}\]])")  # The literal comes first so that the search is fast.
_PATH = re.compile(r" - at `\$\.?(.*)`$")
_MISSING = re.compile(r"Object missing required field `(.*?)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SHOWN = 60


class NegativeZero(int):
    """The integer text ``-0``, told from 0."""


NEGATIVE_ZERO = NegativeZero(0)


@dataclass
class BadRecord(Exception):
    """One record breaks a rule: a stable code, the field (None: the whole record), and what was found and expected."""

    code: str
    field: str | None
    message: str


def count_keys(value: Any) -> int:
    """The number of keys in a decoded JSON value, over all levels."""
    if isinstance(value, dict):
        return len(value) + sum(map(count_keys, value.values()))
    return sum(map(count_keys, value)) if isinstance(value, list) else 0


def keys_may_repeat(data: bytes, distinct_keys: int) -> bool:
    """False when it is certain that no object in ``data`` repeats a key.

    ``distinct_keys`` is the number of distinct keys over all objects of the data. Every key is followed by ``":``
    unless white space stands after its quote, so the number of ``":`` is at least the number of keys, which is at least
    ``distinct_keys``; when the two ends agree, so does the middle. Text that merely looks so makes the answer True.
    """
    return data.count(b'":') != distinct_keys or any(gap in data for gap in (b'" ', b'"\t', b'"\r'))


def has_negative_zero(data: bytes) -> bool:
    """True when the integer ``-0`` may stand in the data."""
    return b"-0" in data and _NEGATIVE_ZERO.search(data) is not None


def line_keys_may_repeat(line: bytes) -> bool:
    """False when it is certain that no object of one JSON line repeats a key and every number in it fits a double."""
    try:
        return keys_may_repeat(line, count_keys(msgspec.json.decode(line)))
    except (msgspec.MsgspecError, RecursionError):
        return True


def check_line(line: str) -> None:
    """Refuse a repeated key at any level, or a number no double can hold, in a line that typed decoding let pass."""
    if line_keys_may_repeat(line.encode()):
        parse(line)


def parse(line: str) -> Any:
    """The line as plain Python values, strictly; ``-0`` comes out as :data:`NEGATIVE_ZERO`. Raises BadRecord."""
    try:
        return json.loads(
            line, object_pairs_hook=_distinct, parse_float=_finite, parse_int=_integer, parse_constant=_constant
        )
    except RecursionError:
        raise BadRecord("invalid_json", None, "is nested too deeply") from None
    except ValueError as error:
        raise BadRecord("invalid_json", None, f"is no JSON: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise BadRecord("duplicate_key", repeated, f"found the key {shorten(repeated)} twice, expected it once")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadRecord("number_out_of_range", None, f"found {text[:_SHOWN]}, expected a number that a double can hold")
    return value


def _integer(text: str) -> int:
    if text == "-0":
        return NEGATIVE_ZERO
    return int(text) if len(text) < 400 else 0  # Only messages show it; typed decoding judged it already.


def _constant(text: str) -> float:
    raise BadRecord("invalid_json", None, f"found {text}, which is no JSON number")


def explain(line: str, error: Exception) -> BadRecord:
    """Why typed decoding refused a line."""
    text = str(error)
    if isinstance(error, RecursionError):
        return BadRecord("invalid_json", None, "is nested too deeply")
    if not isinstance(error, msgspec.ValidationError):
        return _malformed(line, text)
    found_path = _PATH.search(text)
    path = found_path.group(1) if found_path else ""
    message = _PATH.sub("", text)
    if missing := _MISSING.search(message):
        field = f"{path}.{missing.group(1)}" if path else missing.group(1)
        return BadRecord("missing_field", field, "is missing, expected it in every record of this kind")
    if unknown := _UNKNOWN.search(message):
        field = f"{path}.{unknown.group(1)}" if path else unknown.group(1)
        return BadRecord("unknown_field", field, "is not a field of this document, expected only the known ones")
    code, expected = _classify(message, path)
    return BadRecord(code, path or None, f"found {_found(line, path)}, expected {expected}")


def _malformed(line: str, text: str) -> BadRecord:
    if _SURROGATE.search(line):
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            pass
        else:
            return BadRecord("lone_surrogate", None, "holds half of a surrogate pair, which is no Unicode text")
    if "truncated" in text:
        return BadRecord("invalid_json", None, "ends inside the record: the input looks truncated")
    return BadRecord("invalid_json", None, f"is no JSON: {text.removeprefix('JSON is malformed: ')}")


def _classify(message: str, path: str) -> tuple[str, str]:
    if path == "kind" and "Invalid value" in message:
        return "unknown_kind", "a record kind of the protocol"
    if "Invalid enum value" in message:
        return "invalid_value", "one of the values that the protocol lists"
    if "Expected `int` <=" in message or "Integer value out of range" in message:
        return "integer_out_of_range", "an integer below 2^63"
    if "Expected `int` >=" in message:
        return "negative_integer", "a non-negative integer"
    if "Number out of range" in message:
        return "number_out_of_range", "a number that a double can hold"
    return "wrong_type", _expectation(message)


def _expectation(message: str) -> str:
    expected = message.removeprefix("Expected ").partition(", got")[0]
    return expected.replace("`", "").replace("int", "an integer spelled without point or exponent")


def _found(line: str, path: str) -> str:
    """The value at a path of msgspec's spelling (``a.b[0]``); keys of maps are not named there, hence the fallback."""
    try:
        value = json.loads(line, parse_float=_Verbatim, parse_int=_Verbatim)
        for step in re.findall(r"[^.\[\]]+|\[\d+\]", path):
            value = value[int(step[1:-1])] if step[0] == "[" else value[step]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return "another value"
    return shorten(value)


class _Verbatim(str):
    """A number as it was spelled."""

    __slots__ = ()


def shorten(value: Any) -> str:
    """A value as JSON, cut to a length that fits a message."""
    text = str(value) if isinstance(value, _Verbatim) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def check_negative_zero(value: Any, fields: Iterable[str], float_fields: Iterable[str]) -> list[str]:
    """The float fields spelled ``-0``, which means -0.0; raises BadRecord for it in any other known field."""
    allowed = set(float_fields)
    spelled = [name for name in fields if name in value and _holds_negative_zero(value[name])]
    for name in spelled:
        if name not in allowed:
            raise BadRecord("wrong_type", name, "found -0, expected an integer without a sign")
    return spelled


def _holds_negative_zero(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_negative_zero, value.values()))
    return any(map(_holds_negative_zero, value)) if isinstance(value, list) else value is NEGATIVE_ZERO
