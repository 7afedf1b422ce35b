"""All labels tested together by exchanging whole runs, against every exchange counted one by one."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planewise.pipeline import joint
from planewise.pipeline.joint import joint_p, joint_paired_p
from planewise.pipeline.judgement import Samples
from planewise.pipeline.multiple import family

FEW = (3, 4)
ROWS = st.lists(st.lists(st.integers(-9, 9), min_size=sum(FEW), max_size=sum(FEW)), min_size=1, max_size=4)
DELTAS = st.lists(st.lists(st.integers(-9, 9), min_size=5, max_size=5), min_size=1, max_size=4)


def by_definition(statistic: Any, labels: int, exchanges: list[Any]) -> list[float]:
    """Step down: labels from the strongest, each against the largest statistic of itself and all weaker ones."""
    seen = [statistic(label, exchanges[0]) for label in range(labels)]
    order = sorted(range(labels), key=lambda label: -seen[label])
    p, before = [0.0] * labels, 0.0
    for at, label in enumerate(order):
        largest = [max(statistic(weaker, exchange) for weaker in order[at:]) for exchange in exchanges]
        before = max(before, sum(value >= seen[label] - 1e-9 for value in largest) / len(exchanges))
        p[label] = before
    return p


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_two_cohorts_are_judged_over_every_split_of_their_runs(rows: list[list[int]]) -> None:
    first, runs = FEW[0], range(sum(FEW))

    def statistic(label: int, candidate: tuple[int, ...]) -> float:
        values = np.array(rows[label], dtype=float)
        spread = np.sqrt(((values - values.mean()) ** 2).sum())
        return float(abs(values[list(candidate)].sum() - len(candidate) * values.mean()) / spread) if spread else 0.0

    seen = tuple(range(first, sum(FEW)))
    splits = [seen, *(split for split in combinations(runs, FEW[1]) if split != seen)]
    found = joint_p([row[:first] for row in rows], [row[first:] for row in rows])
    assert found.tolist() == pytest.approx(by_definition(statistic, len(rows), splits))


@settings(max_examples=60, deadline=None)
@given(DELTAS)
def test_pairs_are_judged_over_every_choice_of_signs(rows: list[list[int]]) -> None:
    def statistic(label: int, signs: tuple[int, ...]) -> float:
        values = np.array(rows[label], dtype=float)
        length = np.sqrt((values**2).sum())
        return float(abs((values * signs).sum()) / length) if length else 0.0

    found = joint_paired_p(rows)
    assert found.tolist() == pytest.approx(by_definition(statistic, len(rows), list(product((1, -1), repeat=5))))


def test_one_clear_label_of_a_thousand_is_found_with_five_runs() -> None:
    # Exact ranks cannot: 2 / 252 for one label, 7.9 after Holm. Exchanged runs have their floor at 2 / 252 for all.
    rng = np.random.default_rng(1)
    labels = [(f"same {n}", Samples(list(rng.normal(0, 1, 5)), list(rng.normal(0, 1, 5)))) for n in range(999)]
    labels.append(("slower", Samples([0.0, 1, 2, 1, 0], [60.0, 61, 62, 61, 60])))
    by_joint, by_holm = family(labels, adjust="joint"), family(labels)
    assert [row["label"] for row in by_joint if row["verdict"] != "inconclusive"] == ["slower"]
    assert by_joint[0]["p_joint"] == pytest.approx(2 / 252)
    assert {row["verdict"] for row in by_holm} == {"inconclusive"}


def test_labels_that_move_together_count_once() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0, 1, 6), rng.normal(1, 1, 6)
    alone = joint_p([first], [second])[0]
    assert joint_p([first] * 50, [second] * 50).tolist() == pytest.approx([alone] * 50)


def test_equal_values_and_no_labels_say_nothing() -> None:
    assert joint_p([[0.1] * 5, [0.3] * 5], [[0.1] * 5, [0.3] * 5]).tolist() == [1.0, 1.0]
    assert joint_p(np.empty((0, 5)), np.empty((0, 5))).tolist() == []
    assert joint_paired_p([[0.0] * 6]).tolist() == [1.0]


def test_many_labels_in_turns_are_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    first, second = rng.normal(0, 1, (40, 8)), rng.normal(0.8, 1, (40, 8))
    whole = joint_p(first, second)
    monkeypatch.setattr(joint, "_AT_ONCE", 7)
    assert joint_p(first, second).tolist() == pytest.approx(whole.tolist())


@pytest.mark.parametrize("paired", [False, True])
def test_at_most_one_family_in_twenty_has_a_false_finding(paired: bool) -> None:
    # Labels of one run are alike, of long tails, and of few runs: what the normal theory would not bear.
    rng, wrong, families = np.random.default_rng(9), 0, 300
    for _ in range(families):
        common = rng.lognormal(0, 1, (1, 16))
        runs = common + rng.lognormal(0, 1, (30, 16))
        p = joint_paired_p(runs[:, 8:] - runs[:, :8]) if paired else joint_p(runs[:, :8], runs[:, 8:])
        wrong += bool((p <= 0.05).any())
    assert wrong / families <= 0.05 + 2 * (0.05 * 0.95 / families) ** 0.5
