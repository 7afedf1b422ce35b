"""Dense footprints: elements times element size. Shape metadata, never the size of a storage (guide 5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from .errors import ContractError
from .values import INT64_MAX

DTYPE_BYTES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("u8", "i8", "bool", "f8"), 1),
        **dict.fromkeys(("u16", "i16", "f16", "bf16"), 2),
        **dict.fromkeys(("u32", "i32", "f32"), 4),
        **dict.fromkeys(("u64", "i64", "f64"), 8),
    }
)
"""Bytes of one element by dtype name (protocol 1.4); any other name is unknown."""


def element_count(shape: Iterable[int]) -> int:
    """Product of the dimensions; 1 for a scalar.

    Raises :class:`ContractError` when the product overflows signed 64 bits on the way, even if a later dimension is 0.
    """
    sizes = tuple(shape)
    product = math.prod(sizes)
    if 0 < product <= INT64_MAX:  # Without a 0 no part of the product was larger.
        return product
    product = 1
    for size in sizes:
        product *= size
        if product > INT64_MAX:
            raise ContractError(
                "the product of the dimensions does not fit 64 bits", position="shape", code="shape_overflow"
            )
    return product


def element_size(dtype: str) -> int | None:
    """Bytes of one element by its name, in any case; None when the dtype is unknown (protocol 1.4)."""
    return DTYPE_BYTES.get(dtype) or DTYPE_BYTES.get(dtype.strip().lower())


def dense_bytes(shape: Iterable[int], dtype: str) -> int | None:
    """Elements times element size in bytes; None when the dtype is unknown (protocol 1.4).

    Raises :class:`ContractError` when the footprint does not fit signed 64 bits.
    """
    size = element_size(dtype)
    if size is None:
        return None
    footprint = element_count(shape) * size
    if footprint > INT64_MAX:
        raise ContractError("the dense footprint does not fit 64 bits", position="shape", code="shape_overflow")
    return footprint
