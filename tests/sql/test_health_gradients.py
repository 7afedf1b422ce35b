"""Rules about single gradient facts, which hold at any declared coverage."""

from __future__ import annotations

from typing import Any

import pytest
from health_support import NONE, errors, judged, tree

from support import TinyStore

FACT = {"event_id": "g1", "root": "vb", "key": "w", "state": "present", "norm": 0.5}


def facts(*rows: dict[str, Any]) -> Any:
    """A build step that adds gradient facts with the defaults above."""
    return lambda add: add("gradients", *[{**FACT, **row} for row in rows])


def event_codes(store: TinyStore) -> list[str]:
    query = "SELECT DISTINCT code FROM health_issues WHERE code_order BETWEEN 28 AND 41 ORDER BY ALL"
    return [code for (code,) in store.rows(query)]


def test_a_plain_fact_breaks_no_rule(tiny: TinyStore) -> None:
    judged(tiny, "root_count", tree, facts({}))
    assert event_codes(tiny) == []


def test_an_event_id_must_not_be_blank(tiny: TinyStore) -> None:
    assert judged(tiny, "empty_gradient_event_id", tree, facts({"event_id": "\u2003"})) == errors("vb/w")
    assert event_codes(tiny) == ["empty_gradient_event_id"]


@pytest.mark.parametrize(("row", "subject"), [({"root": ""}, "/w"), ({"key": " "}, "vb/ ")])
def test_a_parameter_must_have_a_root_and_a_key(tiny: TinyStore, row: dict[str, str], subject: str) -> None:
    assert judged(tiny, "empty_gradient_parameter_key", tree, facts(row)) == errors(subject)
    assert event_codes(tiny) == ["empty_gradient_parameter_key"]


def test_a_file_separator_is_not_blank(tiny: TinyStore) -> None:
    odd = {"event_id": "\u001c", "root": "\u001d", "key": "\u001f"}
    judged(tiny, "root_count", tree, facts(odd))
    assert event_codes(tiny) == []


def test_each_repetition_of_an_event_id_is_an_error(tiny: TinyStore) -> None:
    rows = [{"key": key} for key in "abc"]
    assert judged(tiny, "duplicate_gradient_event_id", tree, facts(*rows, {"event_id": "g2"})) == errors("g1", "g1")
    assert event_codes(tiny) == ["duplicate_gradient_event_id"]


@pytest.mark.parametrize(
    ("state", "norm"),
    [
        ("present", None),
        ("present", 0.0),
        ("present", -1.0),
        ("present", float("nan")),
        ("present", float("inf")),
        ("zero", None),
        ("zero", -0.0),
        ("zero", 5e-324),
        ("missing", 0.0),
        ("non_finite", 1.0),
        ("non_finite", float("nan")),
    ],
)
def test_a_norm_must_fit_its_state(tiny: TinyStore, state: str, norm: float | None) -> None:
    found = judged(tiny, "gradient_state_norm_inconsistent", tree, facts({"state": state, "norm": norm}))
    assert found == errors("vb/w")


@pytest.mark.parametrize(
    ("state", "norm"), [("present", 5e-324), ("zero", 0.0), ("missing", None), ("non_finite", None)]
)
def test_a_fitting_norm_breaks_no_rule(tiny: TinyStore, state: str, norm: float | None) -> None:
    found = judged(tiny, "gradient_state_norm_inconsistent", tree, facts({"state": state, "norm": norm}))
    assert found == NONE


def test_without_a_contract_keys_are_free(tiny: TinyStore) -> None:
    twice = facts({}, {"event_id": "g2", "state": "non_finite", "norm": None})
    assert judged(tiny, "gradient_manifest_duplicate_key", tree, twice, contract={"gradients": "partial"}) == NONE
    assert event_codes(tiny) == []
