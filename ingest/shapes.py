"""Element counts of many shapes at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

SAFE = float(1 << 62)
"""A product of integers that a double shows to be smaller than this fits signed 64 bits."""


def element_counts(shapes: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The product of each list of non-negative dimensions, 1 for an empty list, and whether it is certainly exact.

    Where it is not certain, a product may have left 64 bits, on the way to a 0 too: compute that row on its own.
    """
    lengths = pc.fill_null(pc.list_value_length(shapes), 0).to_numpy()
    sizes = shapes.flatten().to_numpy()
    counts = np.ones(len(lengths), np.int64)
    largest = np.ones(len(lengths), np.float64)
    filled = lengths > 0
    if filled.any():
        starts = (np.cumsum(lengths) - lengths)[filled]
        with np.errstate(over="ignore"):
            counts[filled] = np.multiply.reduceat(sizes, starts)
            largest[filled] = np.multiply.reduceat(np.maximum(sizes, 1).astype(np.float64), starts)
    return counts, largest < SAFE
