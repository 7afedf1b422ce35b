"""The interval is the protocol's own: the same generator, the same draws, whatever the number of samples (10.4)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planewise.pipeline import bootstrap
from planewise.pipeline.bootstrap import SEED, indexes, paired_interval, unpaired_interval

BASELINE = [100, 102, 99, 101, 103]
CANDIDATE = [75, 80, 78, 79, 77]
MASK = 2**64 - 1


class Generator:
    """The generator one step after the other, in whole numbers."""

    def __init__(self) -> None:
        self.state = SEED

    def draw(self, values: list[int]) -> list[int]:
        drawn = []
        for _ in values:
            self.state ^= self.state << 13 & MASK
            self.state ^= self.state >> 7
            self.state ^= self.state << 17 & MASK
            drawn.append(values[self.state % len(values)])
        return drawn


def median(values: list[int]) -> float:
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return low * 0.5 + high * 0.5


def reference(*cohorts: list[int]) -> tuple[float, float]:
    generator = Generator()
    deltas = []
    for _ in range(10_000):
        medians = [median(generator.draw(cohort)) for cohort in cohorts]
        deltas.append(medians[-1] - medians[0] if len(cohorts) == 2 else medians[0])
    deltas.sort()
    return deltas[249], deltas[9749]


def test_first_indexes_are_the_protocols() -> None:
    assert indexes(5, 8) == [0, 4, 1, 4, 4, 0, 2, 2]


def test_unpaired_interval_is_the_protocols_example() -> None:
    interval = unpaired_interval(BASELINE, CANDIDATE)
    assert (interval.lower_delta_ns, interval.upper_delta_ns) == (-26.0, -20.0)


def test_paired_interval_is_the_protocols_example() -> None:
    interval = paired_interval([c - b for b, c in zip(BASELINE, CANDIDATE, strict=True)])
    assert (interval.lower_delta_ns, interval.upper_delta_ns) == (-26.0, -21.0)


def test_the_document_form_names_level_and_bounds() -> None:
    found = unpaired_interval(BASELINE, CANDIDATE).to_json()
    assert found == {"level": 0.95, "lower_delta_ns": -26.0, "upper_delta_ns": -20.0}


SAMPLES = st.lists(st.integers(0, 2**53), min_size=1, max_size=9)


@settings(max_examples=12)
@given(SAMPLES, SAMPLES)
def test_unpaired_interval_equals_the_draws_taken_one_by_one(baseline: list[int], candidate: list[int]) -> None:
    interval = unpaired_interval(baseline, candidate)
    assert (interval.lower_delta_ns, interval.upper_delta_ns) == reference(baseline, candidate)


@settings(max_examples=12)
@given(st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=9))
def test_paired_interval_equals_the_draws_taken_one_by_one(deltas: list[int]) -> None:
    interval = paired_interval(deltas)
    assert (interval.lower_delta_ns, interval.upper_delta_ns) == reference(deltas)


def test_blocks_of_resamples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = unpaired_interval(BASELINE, CANDIDATE)
    monkeypatch.setattr(bootstrap, "_CELLS", 12_345)
    assert unpaired_interval(BASELINE, CANDIDATE) == whole


def test_the_interval_depends_on_input_order_as_the_protocol_says() -> None:
    forward, backward = [1, 50, 900, 7, 33], [33, 7, 900, 50, 1]
    found = [unpaired_interval(samples, [0]) for samples in (forward, backward)]
    assert [(i.lower_delta_ns, i.upper_delta_ns) for i in found] == [reference(s, [0]) for s in (forward, backward)]


@pytest.mark.parametrize(("baseline", "candidate"), [([], [1]), ([1], [])])
def test_an_empty_cohort_has_no_interval(baseline: list[int], candidate: list[int]) -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        unpaired_interval(baseline, candidate)
