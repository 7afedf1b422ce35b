"""Decimal numbers of other people's files as exact integers: no value goes through a binary float on its way.

A number comes as the text that its file holds (``1727592872266507.240``, ``954.37060546875``, ``1.5e3``).
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

from ..recorder.planes import INT64_MAX

_PLAIN = re.compile(r"(-?)([0-9]{1,15})(?:\.([0-9]{0,3})([0-9]{0,400}))?")
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{0,400})?(?:[eE][+-]?[0-9]{1,3})?")
_EXACT = Context(prec=1300, Emax=999_999, Emin=-999_999)
#: Enough digits for every product of a number that ``_NUMBER`` lets pass and 2**30.
_INT64_DIGITS = 19


class NoNumber(ValueError):
    """The text is no decimal number, or its value does not fit a signed 64-bit integer."""


def microseconds_to_ns(text: str) -> tuple[int, bool]:
    """Nanoseconds of a decimal number of microseconds, and whether they are all of it.

    Digits below a nanosecond are cut off, toward zero, as in every format with decimal times. Raises
    :class:`NoNumber`.
    """
    plain = _PLAIN.fullmatch(text)
    if plain:
        sign, whole, part, below = plain.groups()
        value = int(whole + (part or "").ljust(3, "0"))
        return (-value if sign else value), not below or not below.strip("0")
    return scaled(text, 1000, ROUND_DOWN)


def scaled(text: str, factor: int, rounding: str = ROUND_HALF_EVEN) -> tuple[int, bool]:
    """The whole number nearest to ``text * factor`` (half to even by default), and whether the product was whole.

    Raises :class:`NoNumber`.
    """
    if not _NUMBER.fullmatch(text):
        raise NoNumber(f"found {text[:40]!r}, expected a decimal number")
    try:
        product = _EXACT.multiply(Decimal(text), Decimal(factor))
        if product and product.adjusted() > _INT64_DIGITS:
            raise NoNumber(f"found {text[:40]}, which does not fit 64 bits")
        whole = product.to_integral_value(rounding, _EXACT)
    except InvalidOperation:
        raise NoNumber(f"found {text[:40]}, expected a decimal number") from None
    value = int(whole)
    if not -INT64_MAX - 1 <= value <= INT64_MAX:
        raise NoNumber(f"found {text[:40]}, which does not fit 64 bits")
    return value, whole == product


def as_double(text: str) -> float | None:
    """The double nearest to a decimal number, None when it is no finite one. Raises :class:`NoNumber`."""
    if text.strip().lower() in ("nan", "inf", "-inf", "+inf", "infinity", "-infinity"):
        return None
    if not _NUMBER.fullmatch(text):
        raise NoNumber(f"found {text[:40]!r}, expected a decimal number")
    value = float(text)
    return value if math.isfinite(value) else None
