"""Rules about the semantic labels of a capture contract."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from health_support import NONE, Add, errors, judged, softened, tree

from support import TinyStore


def named(*names: str) -> Callable[[Add], None]:
    """A build step that adds one span for each name, under s1."""

    def step(add: Add) -> None:
        for place, name in enumerate(names):
            row = {"id": f"n{place}", "parent_id": "s1", "name": name, "start_ns": 1, "duration_ns": 1, "end_seq": 0}
            add("spans", row)

    return step


def labels(required: list[str], gpu: list[str] | None = None, cpu: list[str] | None = None) -> dict[str, list[str]]:
    """A capture contract's label lists."""
    return {
        "required_semantic_labels": required,
        "gpu_expected_semantic_labels": gpu or [],
        "cpu_only_semantic_labels": cpu or [],
    }


def label_codes(store: TinyStore) -> list[tuple[str, str | None]]:
    query = "SELECT DISTINCT code, subject FROM health_issues WHERE code_order BETWEEN 51 AND 58 ORDER BY ALL"
    return store.rows(query)


def test_a_blank_required_label_also_fails_cardinality(tiny: TinyStore) -> None:
    assert judged(tiny, "empty_required_semantic_label", tree, contract=labels(["\u00a0"])) == softened("\u00a0")
    assert [code for code, _ in label_codes(tiny)] == [
        "empty_required_semantic_label",
        "required_semantic_label_cardinality",
    ]


def test_each_repetition_of_a_required_label_is_an_issue(tiny: TinyStore) -> None:
    found = judged(tiny, "duplicate_required_semantic_label", tree, named("a"), contract=labels(["a", "a", "a"]))
    assert found == softened("a", "a")
    assert label_codes(tiny) == [("duplicate_required_semantic_label", "a")]


@pytest.mark.parametrize("names", [(), ("a", "a"), ("A",), ("a ",)])
def test_a_required_label_must_name_exactly_one_span(tiny: TinyStore, names: tuple[str, ...]) -> None:
    found = judged(tiny, "required_semantic_label_cardinality", tree, named(*names), contract=labels(["a"]))
    assert found == softened("a")


def test_cardinality_is_raised_once_for_each_entry(tiny: TinyStore) -> None:
    found = judged(tiny, "required_semantic_label_cardinality", tree, contract=labels(["a", "a", "b"]))
    assert found == softened("a", "a", "b")


@pytest.mark.parametrize(("gpu", "cpu"), [([], []), (["a", "b"], []), ([], ["a", "b"]), (["b"], ["a"])])
def test_a_full_partition_or_none_breaks_no_rule(tiny: TinyStore, gpu: list[str], cpu: list[str]) -> None:
    wanted = labels(["a", "b"], gpu, cpu)
    assert judged(tiny, "incomplete_semantic_label_partition", tree, named("b", "a", "c"), contract=wanted) == NONE
    assert label_codes(tiny) == []


def test_a_blank_classified_label_is_an_issue(tiny: TinyStore) -> None:
    wanted = labels(["a"], ["a"], ["\t"])
    found = judged(tiny, "empty_semantic_label_classification", tree, named("a"), contract=wanted)
    assert found == softened("\t")
    assert label_codes(tiny) == [
        ("empty_semantic_label_classification", "\t"),
        ("incomplete_semantic_label_partition", None),
        ("unrequired_semantic_label_classification", "\t"),
    ]


def test_a_label_repeated_in_one_class_is_also_overlapping(tiny: TinyStore) -> None:
    wanted = labels(["a"], [], ["a", "a"])
    found = judged(tiny, "duplicate_semantic_label_classification", tree, named("a"), contract=wanted)
    assert found == softened("a")
    assert label_codes(tiny) == [
        ("duplicate_semantic_label_classification", "a"),
        ("overlapping_semantic_label_classification", "a"),
    ]


def test_a_label_in_both_classes_overlaps_once(tiny: TinyStore) -> None:
    wanted = labels(["a"], ["a"], ["a"])
    found = judged(tiny, "overlapping_semantic_label_classification", tree, named("a"), contract=wanted)
    assert found == softened("a")
    assert label_codes(tiny) == [("overlapping_semantic_label_classification", "a")]


def test_a_classified_label_must_be_required(tiny: TinyStore) -> None:
    wanted = labels(["a"], ["a", "b"])
    found = judged(tiny, "unrequired_semantic_label_classification", tree, named("a", "b"), contract=wanted)
    assert found == softened("b")
    assert label_codes(tiny)[0] == ("incomplete_semantic_label_partition", None)


def test_classes_must_cover_every_required_label(tiny: TinyStore) -> None:
    wanted = labels(["a", "b", "c"], ["a"])
    found = judged(tiny, "incomplete_semantic_label_partition", tree, named(*"abc"), contract=wanted)
    assert found == softened(None)
    assert label_codes(tiny) == [("incomplete_semantic_label_partition", None)]


def test_classes_without_any_required_label_are_no_partition(tiny: TinyStore) -> None:
    assert judged(tiny, "incomplete_semantic_label_partition", tree, contract=labels([], ["a"])) == softened(None)


def test_an_invalid_run_says_so_beside_its_labels(tiny: TinyStore) -> None:
    assert judged(tiny, "root_count", contract=labels(["a"])) == errors(None)
    assert tiny.rows("SELECT DISTINCT status FROM run_health") == [("invalid",)]
