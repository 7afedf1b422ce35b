"""Checks of single values at the recorder's edge.

What passes here can be written, so a bad value is refused at the call that brought it and never in the background.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, TypeVar, cast

from .errors import ContractError

INT64_MAX = 2**63 - 1

_SHOWN = 80  # Characters of a value that a message repeats.

_Member = TypeVar("_Member", bound=StrEnum)

# Unicode White_Space. str.strip() also takes U+001C to U+001F, which the protocol does not call blank.
_WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def is_blank(text: str) -> bool:
    """True for an empty text and for one of nothing but Unicode White_Space."""
    return not text.strip(_WHITE_SPACE)


def text(value: object, name: str) -> str:
    """The value as a plain ``str``; :class:`ContractError` when it is no text or has no UTF-8 form."""
    if type(value) is str and value.isascii():  # Nearly every value of the hot path ends here.
        return value
    if not isinstance(value, str):
        raise ContractError(f"expected text, found {type(value).__name__}", position=name, code="not_text")
    if not value.isascii():
        _encodable(value, name)
    return value


def optional_text(value: object, name: str) -> str | None:
    """The value as text, or None for None."""
    return None if value is None else text(value, name)


def filled_text(value: object, name: str) -> str:
    """The value as text that is not blank."""
    found = text(value, name)
    if is_blank(found):
        raise ContractError("is blank; expected some text", position=name, code=f"blank_{name}")
    return found


def flag(value: object, name: str) -> bool:
    """The value as a bool; nothing else passes for one."""
    if not isinstance(value, bool):
        raise ContractError(f"expected True or False, found {shown(value)}", position=name, code="not_a_flag")
    return value


def count(value: object, name: str) -> int:
    """The value as an integer from 0 to 2^63 - 1; integers of numpy and torch pass, floats and truth values do not."""
    if type(value) is int and 0 <= value <= INT64_MAX:
        return value
    if type(value) is not int:
        value = _as_int(value, name)
    if not 0 <= value <= INT64_MAX:
        raise ContractError(f"found {shown(value)}, expected 0 to 2^63 - 1", position=name, code="integer_out_of_range")
    return value


def optional_count(value: object, name: str) -> int | None:
    """The value as a count, or None for None."""
    return None if value is None else count(value, name)


def positive(value: object, name: str) -> int:
    """The value as an integer from 1 to 2^63 - 1."""
    found = count(value, name)
    if found == 0:
        raise ContractError("found 0, expected at least 1", position=name, code=f"zero_{name}")
    return found


def end_of(start_ns: int, duration_ns: int, name: str) -> int:
    """``start + duration``; :class:`ContractError` when it does not fit signed 64 bits."""
    end = start_ns + duration_ns
    if end > INT64_MAX:
        raise ContractError(
            f"{start_ns} + {duration_ns} ends after 2^63 - 1", position=name, code="integer_out_of_range"
        )
    return end


def dimensions(value: Iterable[object]) -> tuple[int, ...]:
    """A shape as a tuple of non-negative integers."""
    sizes = value if type(value) is tuple else items(value, "shape", "integers", "not_an_integer")
    for size in sizes:
        if type(size) is not int or not 0 <= size <= INT64_MAX:
            return tuple([count(size, "shape") for size in sizes])
    return cast("tuple[int, ...]", sizes)


def items(value: object, name: str, expected: str, code: str) -> tuple[Any, ...]:
    """The members of a list of any kind; a text or something that has no members is refused."""
    if not isinstance(value, str):
        try:
            return tuple(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ContractError(f"expected {expected}, found {shown(value)}", position=name, code=code)


def number(value: object, name: str) -> float:
    """The value as a float, which may be NaN or infinite; numbers of numpy and torch pass, truth values do not.

    A tensor that takes part in autograd is read as it is: recording a loss neither warns nor keeps its graph.
    """
    if type(value) is float:
        return value
    if not isinstance(value, (bool, str, bytes, bytearray)) and not _is_truth(value):
        try:
            detach = getattr(value, "detach", None)
            return float(value if detach is None else detach())  # type: ignore[arg-type]
        except Exception as fault:  # Whatever the type does instead of giving a number.
            raise _no_number(value, name) from fault
    raise _no_number(value, name)


def _no_number(value: object, name: str) -> ContractError:
    return ContractError(f"expected a number, found {shown(value)}", position=name, code="not_a_number")


def member(kind: type[_Member], value: object, name: str) -> _Member:
    """The member of a vocabulary that ``value`` is or spells."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in kind._value2member_map_:
        return kind(value)
    known = ", ".join(kind)
    raise ContractError(f"found {shown(value)}, expected one of {known}", position=name, code=f"unknown_{name}")


def _encodable(value: str, name: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as fault:
        raise ContractError(
            f"a lone surrogate at character {fault.start} has no UTF-8 form", position=name, code="not_utf8"
        ) from None


def _as_int(value: Any, name: str) -> int:
    if not isinstance(value, bool) and not _is_truth(value):
        try:
            return operator.index(value)
        except Exception:  # noqa: BLE001  torch raises more than TypeError, such as for a tensor without data.
            pass
    raise ContractError(f"expected an integer, found {shown(value)}", position=name, code="not_an_integer")


def _is_truth(value: object) -> bool:
    """True for a truth value of numpy or torch, which would pass for 0 or 1."""
    return str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


def shown(value: object) -> str:
    """A value as a message can bear it: one line, cut when long; an enormous integer by its size."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    try:
        found = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001  A broken repr may not hide the refusal.
        found = f"a {type(value).__name__}"
    return found if len(found) <= _SHOWN else f"{found[:_SHOWN]}…"
