"""The bootstrap interval of a comparison: the protocol's own generator, computed as arrays (protocol 10.4).

The protocol draws all indexes one after the other from one 64-bit xorshift generator. Each step of that generator is
linear over single bits, so the state any number of steps ahead is found without taking the steps. Every one of the
10,000 resamples starts at its own place of the one sequence and all of them step together. The drawn indexes are
exactly the protocol's, so there is one interval and no approximation of it; it depends on the order of the samples,
which is the input order of the runs (pairs: the order of the pair ids).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
SEED = 0x4D595DF4D0F33173
LEVEL = 0.95
LOWER_INDEX, UPPER_INDEX = 249, 9749
"""Zero-based places of the bounds among the sorted differences (protocol 10.4)."""

_CELLS = 4_000_000  # Drawn values held at once: 32 MB, whatever the number of samples.

States = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A 95 % interval of the difference candidate - baseline, in nanoseconds."""

    lower_delta_ns: float
    upper_delta_ns: float

    def to_json(self) -> dict[str, float]:
        """The ``confidence_interval`` object of a comparison (protocol 10.4)."""
        return {"level": LEVEL, "lower_delta_ns": self.lower_delta_ns, "upper_delta_ns": self.upper_delta_ns}


def unpaired_interval(baseline: Sequence[int], candidate: Sequence[int]) -> Interval:
    """The interval of the difference of the medians of two independent cohorts, in input order.

    Raises ``ValueError`` when a cohort is empty.
    """
    first, second = _samples(baseline), _samples(candidate)
    deltas = [
        _medians(candidate_draw) - _medians(baseline_draw) for baseline_draw, candidate_draw in _draws(first, second)
    ]
    return _bounds(deltas)


def paired_interval(deltas_ns: Sequence[int]) -> Interval:
    """The interval of the median of per-pair differences, in the order of the pair ids.

    Raises ``ValueError`` when there is no pair.
    """
    return _bounds([_medians(draw) for (draw,) in _draws(_samples(deltas_ns))])


def indexes(length: int, count: int) -> list[int]:
    """The first ``count`` indexes that the protocol's generator draws for ``length`` samples."""
    states = np.array([SEED], dtype=np.uint64)
    drawn = []
    for _ in range(count):
        states = _step(states)
        drawn.append(int(states[0] % np.uint64(length)))
    return drawn


def _samples(values: Sequence[int]) -> npt.NDArray[np.int64]:
    if not len(values):
        raise ValueError("a bootstrap needs at least one sample in each cohort")
    return np.asarray(values, dtype=np.int64)


def _draws(*cohorts: npt.NDArray[np.int64]) -> Iterator[tuple[npt.NDArray[np.int64], ...]]:
    """For each block of resamples one array per cohort: a row per draw, a column per resample."""
    steps = sum(map(len, cohorts))
    starts = _starts(steps)
    block = max(1, _CELLS // steps)
    for begin in range(0, RESAMPLES, block):
        states = starts[begin : begin + block]
        drawn = []
        for cohort in cohorts:
            chosen = np.empty((len(cohort), len(states)), dtype=np.int64)
            for row in chosen:
                states = _step(states)
                row[:] = cohort[states % np.uint64(len(cohort))]
            drawn.append(chosen)
        yield tuple(drawn)


def _starts(steps: int) -> States:
    """The generator's state before each resample, when every resample takes ``steps`` steps."""
    states = np.array([SEED], dtype=np.uint64)
    ahead = _matrix_power(steps)
    while len(states) < RESAMPLES:
        states = np.concatenate([states, _apply(ahead, states)])
        ahead = _apply(ahead, ahead)
    return states[:RESAMPLES]


def _step(states: States) -> States:
    # Unsigned 64-bit arrays drop the bits shifted out, which is the protocol's arithmetic modulo 2^64.
    states = states ^ (states << np.uint64(13))
    states ^= states >> np.uint64(7)
    states ^= states << np.uint64(17)
    return states


def _matrix_power(steps: int) -> States:
    """``steps`` steps as a 64 x 64 matrix over bits: entry k is where the state with only bit k set goes."""
    unit = np.uint64(1) << np.arange(64, dtype=np.uint64)
    power, square = unit, _step(unit)
    while steps:
        if steps & 1:
            power = _apply(square, power)
        square = _apply(square, square)
        steps >>= 1
    return power


def _apply(matrix: States, states: States) -> States:
    result = np.zeros_like(states)
    for bit in range(64):
        result ^= matrix[bit] * (states >> np.uint64(bit) & np.uint64(1))
    return result


def _medians(drawn: npt.NDArray[np.int64]) -> Floats:
    """The median of each column by percentile(0.5) of protocol 10.3: the middle value, or half of each middle value."""
    ordered = np.sort(drawn, axis=0)
    low, high = ordered[(len(drawn) - 1) // 2], ordered[len(drawn) // 2]
    medians: Floats = low.astype(np.float64) * 0.5 + high.astype(np.float64) * 0.5
    return medians if len(drawn) % 2 == 0 else low.astype(np.float64)


def _bounds(blocks: list[Floats]) -> Interval:
    deltas: Any = np.sort(np.concatenate(blocks))
    return Interval(float(deltas[LOWER_INDEX]), float(deltas[UPPER_INDEX]))
