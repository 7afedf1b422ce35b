"""Where nothing changed, verdicts are wrong at most once in twenty; seeded, with the table in docs/decisions.md."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "compare.py"


def simulation() -> Any:
    spec = importlib.util.spec_from_file_location("bench_compare", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SIMULATION = simulation()


@pytest.mark.slow
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("noise", sorted(SIMULATION.NOISE))
@pytest.mark.parametrize("runs", SIMULATION.RUNS)
def test_wrong_verdicts_stay_below_one_in_twenty(noise: str, runs: int, paired: bool) -> None:
    trials = 2000
    rate = SIMULATION.false_rate(SIMULATION.NOISE[noise], runs, paired=paired, trials=trials, seed=11)
    assert SIMULATION.binomial(rate, trials)[0] <= 0.05


def test_normal_noise_is_calibrated_and_uses_its_level() -> None:
    rate = SIMULATION.false_rate(SIMULATION.NOISE["normal"], 12, paired=False, trials=800, seed=5)
    low, high = SIMULATION.binomial(rate, 800)
    assert low <= 0.05 <= high + 0.02


def test_a_real_difference_is_found() -> None:
    import numpy as np

    def shifted(rng: Any, size: int) -> Any:
        return rng.normal(100, 5, size) + np.where(np.arange(size) % 2 == 0, 0, 15)

    found = [SIMULATION.unpaired_p(*_apart(shifted, seed)) <= 0.05 for seed in range(50)]
    assert sum(found) >= 45


def _apart(draw: Any, seed: int) -> tuple[Any, Any]:
    import numpy as np

    values = draw(np.random.default_rng(seed), 20)
    return values[0::2], values[1::2]
