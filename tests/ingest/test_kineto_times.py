"""Decimal microseconds are nanoseconds to the last digit, whatever their notation."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planewise.ingest.kineto_times import nanoseconds

LIMIT = 2**63 - 1


def parse(*literals: str) -> list[tuple[int, bool, bool]]:
    times = nanoseconds([msgspec.Raw(literal.encode()) for literal in literals])
    return list(zip(times.ns.tolist(), times.valid.tolist(), times.repaired.tolist(), strict=True))


@pytest.mark.parametrize(
    ("literal", "ns", "repaired"),
    [
        ("0", 0, False),
        ("12", 12_000, False),
        ("12.5", 12_500, False),
        ("1790857026123456.789", 1790857026123456789, False),
        ('"1727592872266507.240"', 1727592872266507240, False),
        ("1.2345", 1234, True),
        ("1.2340", 1234, False),
        ("-1.2345", -1234, True),
        ("-0.0004", 0, True),
        ("1e3", 1_000_000, False),
        ("1.5E-3", 1, True),
        ("9223372036854775.807", LIMIT, False),
    ],
)
def test_a_literal_is_this_many_nanoseconds(literal: str, ns: int, repaired: bool) -> None:
    assert parse(literal) == [(ns, True, repaired)]
    assert parse("5", literal, "5.5")[1] == (ns, True, repaired)


@pytest.mark.parametrize(
    "literal", ["", "null", '"x"', "true", "[]", '""', "9223372036854775.808", "1e999", "1e9999999"]
)
def test_what_is_no_time_or_none_of_64_bits_is_invalid(literal: str) -> None:
    assert parse("1", literal, "2") == [(1000, True, False), (0, False, False), (2000, True, False)]


def test_a_line_break_in_a_literal_shifts_no_other() -> None:
    assert parse("1", "[1,\n2]", "3") == [(1000, True, False), (0, False, False), (3000, True, False)]


def test_no_literals_are_no_times() -> None:
    assert parse() == []


literals = st.one_of(
    st.integers(-LIMIT // 1000, LIMIT // 1000).map(str),
    st.tuples(st.integers(0, 10**16), st.integers(0, 999)).map(lambda pair: f"{pair[0]}.{pair[1]:03d}"),
    st.tuples(st.integers(0, 10**12), st.text("0123456789", min_size=1, max_size=6)).map(lambda p: f"{p[0]}.{p[1]}"),
)


@given(st.lists(literals, max_size=30))
def test_columns_of_literals_equal_exact_decimals(found: list[str]) -> None:
    wanted = []
    for literal in found:
        exact = Decimal(literal) * 1000
        ns = int(exact)
        fits = abs(ns) <= LIMIT
        wanted.append((ns if fits else 0, fits, fits and exact != ns))
    assert parse(*found) == wanted
