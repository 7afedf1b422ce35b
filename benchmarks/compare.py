"""Comparison: how often a verdict is wrong where nothing changed, and what many questions at once cost.

Run: ``python benchmarks/compare.py [--trials N]``. The first table simulates cohorts without a difference and counts
verdicts other than inconclusive, with the 95 % binomial interval of the rate; the protocol's bootstrap stands beside.
The second times 1,000 labels of ten runs against scipy's vectorised bootstrap, and Holm and Benjamini-Hochberg against
statsmodels, with the largest difference of results; each peer only where it is installed (the extra ``bench``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any

import numpy as np

from planewise.pipeline.bootstrap import paired_interval, unpaired_interval
from planewise.pipeline.capture_order import OrderedRun, capture_order
from planewise.pipeline.intervals import LEVEL, paired_p, unpaired_p
from planewise.pipeline.judgement import Samples
from planewise.pipeline.multiple import adjusted, family

RUNS = (5, 8, 12, 30)
Draw = Callable[[Any, int], Any]


def _bimodal(rng: Any, size: int) -> Any:
    return rng.normal(100, 2, size) + np.where(rng.random(size) < 0.3, 15, 0)


def _drifting(rng: Any, size: int) -> Any:
    return rng.normal(100, 2, size) + np.linspace(0, 10, size)


def _blocks(rng: Any, size: int) -> Any:
    """Neighbours share most of their noise, as in a machine that is warm for a while."""
    noise = rng.normal(0, 2, size)
    for at in range(1, size):
        noise[at] += 0.7 * noise[at - 1]
    return 100 + noise


NOISE: dict[str, Draw] = {
    "normal": lambda rng, size: rng.normal(100, 5, size),
    "log-normal": lambda rng, size: rng.lognormal(4.6, 0.4, size),
    "bimodal": _bimodal,
    "heavy tails": lambda rng, size: 100 + rng.standard_t(2, size),
    "drifting clock": _drifting,
    "autocorrelated": _blocks,
}
"""Draws of 2 n runs in the order of their capture, without any difference between the cohorts."""


def cohorts(draw: Draw, runs: int, rng: Any) -> tuple[Any, Any]:
    """The runs of both cohorts, one of each in turn, a coin telling which of them comes first."""
    values = draw(rng, 2 * runs)
    first, second = values[0::2], values[1::2]
    swapped = rng.random(runs) < 0.5
    return np.where(swapped, second, first), np.where(swapped, first, second)


def false_rate(draw: Draw, runs: int, *, paired: bool, trials: int, seed: int, protocol: bool = False) -> float:
    """How often cohorts without a difference get a verdict."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(trials):
        baseline, candidate = cohorts(draw, runs, rng)
        if protocol:
            wrong += _by_protocol(baseline, candidate, paired=paired)
        else:
            p = paired_p(candidate - baseline) if paired else unpaired_p(baseline, candidate)
            wrong += p <= 1 - LEVEL
    return wrong / trials


def _by_protocol(baseline: Any, candidate: Any, *, paired: bool) -> bool:
    before, after = ([round(value * 1000) for value in cohort] for cohort in (baseline, candidate))
    if paired:
        found = paired_interval([b - a for a, b in zip(before, after, strict=True)])
    else:
        found = unpaired_interval(before, after)
    return not found.lower_delta_ns <= 0 <= found.upper_delta_ns


def separated_rate(runs: int, *, trials: int, seed: int) -> tuple[float, float]:
    """One cohort wholly before the other under drift: how often ranks alone, and the verdict, call it a change."""
    rng, alone, verdicts = np.random.default_rng(seed), 0, 0
    for _ in range(trials):
        values = _drifting(rng, 2 * runs)
        changed = unpaired_p(values[:runs], values[runs:]) <= 1 - LEVEL
        names = ["baseline"] * runs + ["candidate"] * runs
        order = [
            OrderedRun(str(n), name, value, f"2026-01-01T{n // 60:02d}:{n % 60:02d}:00Z")
            for n, (name, value) in enumerate(zip(names, values, strict=True))
        ]
        alone += changed
        verdicts += changed and not capture_order(order).is_confounded
    return alone / trials, verdicts / trials


def binomial(rate: float, trials: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a rate."""
    z = 1.96
    middle = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return middle - half, middle + half


def calibration(trials: int, seed: int = 1) -> Iterator[str]:
    """The first table."""
    yield "| noise | runs | unpaired | paired | protocol, unpaired |"
    yield "| --- | --- | --- | --- | --- |"
    for name, draw in NOISE.items():
        for runs in RUNS:
            cells = []
            for paired in (False, True):
                rate = false_rate(draw, runs, paired=paired, trials=trials, seed=seed)
                low, high = binomial(rate, trials)
                cells.append(f"{rate:.1%} ({low:.1%} to {high:.1%})")
            few = min(trials, 300)  # 10,000 resamples each.
            cells.append(f"{false_rate(draw, runs, paired=False, trials=few, seed=seed, protocol=True):.1%}")
            yield f"| {name} | {runs} | {' | '.join(cells)} |"
    for runs in RUNS:
        alone, verdicts = separated_rate(runs, trials=trials, seed=seed)
        yield f"| drift, one cohort first | {runs} | {alone:.1%} by ranks, {verdicts:.1%} with the finding | - | - |"


def speed() -> Iterator[str]:
    """The second table."""
    rng = np.random.default_rng(2)
    labels = [(rng.normal(100, 5, 10), rng.normal(100, 5, 10)) for _ in range(1000)]
    begun = time.perf_counter()
    found = family([(f"l{n}", Samples(list(a), list(b))) for n, (a, b) in enumerate(labels)], adjust="joint")
    own = time.perf_counter() - begun
    yield f"1,000 labels of 10 against 10 runs, intervals, p, Holm and Benjamini-Hochberg: {own:.3f} s"
    floor = _shared_weights(labels)
    yield f"10,000 resamples of means by shared weights: {floor:.3f} s; ours is {own / floor:.1f} times as long"
    yield from _against_scipy(labels, own)
    yield from _against_statsmodels(np.array([row["p"] for row in found]))


def _shared_weights(labels: list[Any]) -> float:
    """The fastest bootstrap of means known here: every label shares the counts of a resample."""
    rng = np.random.default_rng(3)
    begun = time.perf_counter()
    baseline, candidate = (np.stack([pair[side] for pair in labels]) for side in (0, 1))
    runs = baseline.shape[1]
    weights = [rng.multinomial(runs, np.full(runs, 1 / runs), 10_000) / runs for _ in range(2)]
    deltas = np.sort(candidate @ weights[1].T - baseline @ weights[0].T, axis=1)
    assert (deltas[:, 249] <= deltas[:, 9749]).all()
    return time.perf_counter() - begun


def _against_scipy(labels: list[Any], own: float) -> Iterator[str]:
    try:
        from scipy.stats import bootstrap, mannwhitneyu
    except ImportError:
        yield "scipy is not installed (the extra bench)"
        return
    begun = time.perf_counter()
    baseline, candidate = (np.stack([pair[side] for pair in labels]) for side in (0, 1))
    bootstrap(
        (baseline, candidate),
        lambda a, b, axis: np.median(b, axis=axis) - np.median(a, axis=axis),
        axis=1, vectorized=True, n_resamples=10_000, method="percentile", batch=200, rng=np.random.default_rng(3),
    )  # fmt: skip
    taken = time.perf_counter() - begun
    yield f"scipy.stats.bootstrap, vectorised, 10,000 resamples: {taken:.1f} s, {taken / own:.0f} times as long"
    exact = [mannwhitneyu(b, a, method="exact").pvalue for a, b in labels]
    worst = max(abs(p - unpaired_p(a, b)) for p, (a, b) in zip(exact, labels, strict=True))
    yield f"largest difference of p to scipy.stats.mannwhitneyu(method='exact'): {worst:.1e}"


def _against_statsmodels(p: Any) -> Iterator[str]:
    try:
        from statsmodels.stats.multitest import multipletests
    except ImportError:
        yield "statsmodels is not installed (the extra bench)"
        return
    holm, bh = adjusted(p)
    for name, own, method in (("Holm", holm, "holm"), ("Benjamini-Hochberg", bh, "fdr_bh")):
        worst = np.abs(own - multipletests(p, method=method)[1]).max()
        yield f"largest difference of {name} to statsmodels: {worst:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000)
    for line in calibration(parser.parse_args().trials):
        print(line, flush=True)
    print()
    for line in speed():
        print(line, flush=True)


if __name__ == "__main__":
    main()
