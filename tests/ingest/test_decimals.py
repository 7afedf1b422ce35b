"""Decimal text becomes exact integers, and what does not fit is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planewise.ingest.decimals import NoNumber, microseconds_to_ns, scaled


@pytest.mark.parametrize(
    ("text", "expected", "exact"),
    [
        ("1727592872266507.240", 1727592872266507240, True),
        ("14.299", 14299, True),
        ("0.01", 10, True),
        ("7", 7000, True),
        ("-1.5", -1500, True),
        ("1543.3953857421875", 1543395, False),
        ("0.0019", 1, False),
        ("-0.0019", -1, False),
        ("0.0020", 2, True),
        ("1.5e3", 1500000, True),
        ("9223372036854775.807", 2**63 - 1, True),
    ],
)
def test_microseconds_come_out_as_whole_nanoseconds_cut_toward_zero(text, expected, exact):
    assert microseconds_to_ns(text) == (expected, exact)


@pytest.mark.parametrize("text", ["", "nan", "1e999", "1e99", "0x1", "1_0", "9223372036854775.808", " 1", "1" * 500])
def test_what_is_no_number_of_64_bits_is_refused(text):
    with pytest.raises(NoNumber):
        microseconds_to_ns(text)


def test_megabytes_are_whole_bytes_exactly_or_said_not_to_be():
    assert scaled("954.37060546875", 1 << 20) == (1000730112, True)
    assert scaled("0.1", 1 << 20) == (104858, False)  # 104857.6


@given(st.decimals(-(10**15), 10**15, allow_nan=False, places=6))
def test_any_decimal_is_cut_and_rounded_as_decimal_arithmetic_does(value: Decimal):
    assert microseconds_to_ns(format(value, "f"))[0] == int(value * 1000)
    assert scaled(format(value, "f"), 1000)[0] == int((value * 1000).to_integral_value())
