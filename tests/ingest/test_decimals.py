"""Decimal text becomes exact integers, and what does not fit is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planewise.ingest.decimals import NoNumber, microseconds_to_ns, scaled


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1727592872266507.240", 1727592872266507240),
        ("14.299", 14299),
        ("0.01", 10),
        ("7", 7000),
        ("-1.5", -1500),
        ("1543.3953857421875", 1543395),
        ("0.0005", 0),
        ("0.0015", 2),
        ("1.5e3", 1500000),
        ("9223372036854775.807", 2**63 - 1),
    ],
)
def test_microseconds_come_out_as_whole_nanoseconds_rounded_half_to_even(text, expected):
    assert microseconds_to_ns(text) == expected


@pytest.mark.parametrize("text", ["", "nan", "1e999", "1e99", "0x1", "1_0", "9223372036854775.808", " 1", "1" * 500])
def test_what_is_no_number_of_64_bits_is_refused(text):
    with pytest.raises(NoNumber):
        microseconds_to_ns(text)


def test_megabytes_are_whole_bytes_exactly_or_said_not_to_be():
    assert scaled("954.37060546875", 1 << 20) == (1000730112, True)
    assert scaled("0.1", 1 << 20) == (104858, False)  # 104857.6


@given(st.decimals(-(10**15), 10**15, allow_nan=False, places=6))
def test_any_decimal_is_rounded_as_decimal_arithmetic_rounds_it(value: Decimal):
    assert microseconds_to_ns(format(value, "f")) == int((value * 1000).to_integral_value())
