"""The bootstrap interval against its peers, as ratios: ``python benchmarks/bootstrap.py [--quick]``.

The protocol's draws taken one by one in Python are the reading of the protocol to the letter; numpy's own generator
with an index matrix is the floor, though its draws are not the protocol's. Medians of interleaved repetitions.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from planewise.pipeline.bootstrap import RESAMPLES, SEED, unpaired_interval

MASK = 2**64 - 1


def one_by_one(baseline: list[int], candidate: list[int]) -> tuple[float, float]:
    """The protocol's loop in plain Python."""
    state = SEED
    deltas = []
    for _ in range(RESAMPLES):
        medians = []
        for cohort in (baseline, candidate):
            drawn = []
            for _ in cohort:
                state ^= state << 13 & MASK
                state ^= state >> 7
                state ^= state << 17 & MASK
                drawn.append(cohort[state % len(cohort)])
            medians.append(statistics.median(drawn))
        deltas.append(medians[1] - medians[0])
    deltas.sort()
    return float(deltas[249]), float(deltas[9749])


def index_matrix(baseline: list[int], candidate: list[int]) -> tuple[float, float]:
    """numpy's generator and medians over a matrix of draws."""
    generator = np.random.default_rng(1)
    medians = [
        np.median(np.asarray(cohort)[generator.integers(0, len(cohort), (RESAMPLES, len(cohort)))], axis=1)
        for cohort in (baseline, candidate)
    ]
    deltas = np.sort(medians[1] - medians[0])
    return float(deltas[249]), float(deltas[9749])


def ours(baseline: list[int], candidate: list[int]) -> tuple[float, float]:
    """The interval that comparisons use."""
    interval = unpaired_interval(baseline, candidate)
    return interval.lower_delta_ns, interval.upper_delta_ns


def main() -> None:
    """Print one row per number of samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few samples, one repetition")
    quick = parser.parse_args().quick
    print("samples  ours ms  / numpy index matrix  / one by one")
    for size in (5, 20) if quick else (5, 20, 200):
        generator = np.random.default_rng(size)
        cohorts = [generator.integers(10**6, 2 * 10**6, size).tolist() for _ in range(2)]
        ways: tuple[Callable[..., tuple[float, float]], ...] = (ours, index_matrix, one_by_one)
        times: dict[str, list[float]] = {way.__name__: [] for way in ways}
        results = {}
        for _ in range(1 if quick else 5):
            for way in ways:
                begin = time.perf_counter()
                results[way.__name__] = way(*cohorts)
                times[way.__name__].append(time.perf_counter() - begin)
        assert results["ours"] == results["one_by_one"], results
        base, floor, loop = (statistics.median(times[way.__name__]) for way in ways)
        print(f"{size:7}  {base * 1e3:7.1f}  {base / floor:20.2f}  {base / loop:12.3f}")


if __name__ == "__main__":
    main()
