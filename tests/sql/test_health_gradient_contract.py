"""The gradient contract: its digest, its validity, and what it demands of the gradient facts."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from health_support import NONE, errors, judged, softened, tree
from hypothesis import given
from hypothesis import strategies as st

from support import TinyStore, emptied

Entry = tuple[str, str, str]
WORKED: list[Entry] = [("vb", "frozen.bias", "frozen"), ("vb", "layer.weight", "trunk")]
WORKED_DIGEST = "sha256:3eb0aba921ad4af44983feda009f7e1042fe2be52dbb3512dac9bcaaa4aec31a"


def digest(entries: list[Entry]) -> str:
    """The manifest digest, in Python."""
    image = b"candle-graph/gradient-manifest/1\0"
    for part in (part.encode() for entry in entries for part in entry):
        image += len(part).to_bytes(8, "little") + part
    return f"sha256:{hashlib.sha256(image).hexdigest()}"


def contract(
    entries: list[Entry], families: list[tuple[str, str, int]], declared: str = "complete", sha256: str | None = None
) -> dict[str, Any]:
    """A capture contract's gradient members."""
    return {
        "gradients": declared,
        "gradient_contract": {
            "manifest_sha256": digest(entries) if sha256 is None else sha256,
            "expected": [dict(zip(("root", "key", "family"), entry, strict=True)) for entry in entries],
            "families": [
                dict(zip(("family", "expectation", "min_present"), family, strict=True)) for family in families
            ],
        },
    }


def family(expectation: str, min_present: int, members: str = "abc") -> dict[str, Any]:
    """A contract of one family f whose members are r/a, r/b, ..."""
    return contract([("r", key, "f") for key in members], [("f", expectation, min_present)])


def facts(states: dict[str, str]) -> Any:
    """A build step: one fact for each key, in order, with a norm that fits its state."""
    norms = {"present": 1.0, "zero": 0.0}
    rows = [
        {"event_id": f"g{place}", "root": "r", "key": key[0], "state": state, "norm": norms.get(state)}
        for place, (key, state) in enumerate(states.items())
    ]
    return lambda add: add("gradients", *rows)


def contract_codes(store: TinyStore) -> list[str]:
    query = "SELECT DISTINCT code FROM health_issues WHERE code_order BETWEEN 28 AND 41 ORDER BY ALL"
    return [code for (code,) in store.rows(query)]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (WORKED, WORKED_DIGEST),
        (WORKED[::-1], "sha256:92bb6e2be81c1ae30e88a42700b83c788a17e70793a2bd12993cf573bdea16a6"),
        (
            [("parameters", f"{name}.weight", name) for name in ("trunk", "frozen", "optional")],
            "sha256:d7f0b4aa8a4072b9824018c8d3eff5757286f1348366c15ef8780be38945fcc6",
        ),
    ],
)
def test_the_manifest_digest_has_its_published_values(tiny: TinyStore, entries: list[Entry], expected: str) -> None:
    tiny.run(contract=contract(entries, []))
    query = "SELECT _gradient_manifest_sha256(capture_contract.gradient_contract.expected) FROM runs"
    assert tiny.rows(query) == [(expected,)]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=4))
def test_the_manifest_digest_is_that_of_the_bytes(entries: list[Entry]) -> None:
    store = emptied().run(contract=contract(entries, []))
    query = "SELECT _gradient_manifest_sha256(capture_contract.gradient_contract.expected) FROM runs"
    assert store.rows(query) == [(digest(entries),)]


def test_complete_gradients_need_a_contract(tiny: TinyStore) -> None:
    found = judged(tiny, "gradient_contract_missing", tree, contract={"gradients": "complete"})
    assert found == errors(None)
    assert contract_codes(tiny) == ["gradient_contract_missing"]


@pytest.mark.parametrize("declared", ["none", "partial"])
def test_a_contract_needs_complete_gradients(tiny: TinyStore, declared: str) -> None:
    wrong = contract([], [], declared)
    assert judged(tiny, "gradient_contract_without_complete_coverage", tree, contract=wrong) == errors(None)
    assert contract_codes(tiny) == ["gradient_contract_without_complete_coverage"]


RULES = [("frozen", "inactive", 0), ("trunk", "active", 1)]
INVALID: list[tuple[list[Entry], list[tuple[str, str, int]], str | None, str]] = [
    ([], [], None, "the manifest is empty"),
    (WORKED, [], None, "no family rule exists"),
    (WORKED, RULES, WORKED_DIGEST.upper(), "manifest_sha256 is SHA256:"),
    ([("", "k", "trunk"), *WORKED], RULES, None, "entry 1 of the manifest has a blank"),
    ([*WORKED, ("vb", "\u2028", "trunk")], RULES, None, "entry 3 of the manifest has a blank"),
    ([*WORKED, ("vb", "k", " ")], RULES, None, "entry 3 of the manifest has a blank"),
    ([*WORKED, ("vb", "frozen.bias", "trunk")], RULES, None, "entry 3 of the manifest repeats vb/frozen.bias"),
    (WORKED, [*RULES, (" ", "active", 1)], None, "family rule 3 has a blank name"),
    (WORKED, [*RULES, RULES[0]], None, "family rule 3 repeats frozen"),
    (WORKED, [*RULES, ("head", "active", 1)], None, "family head has no member"),
    (WORKED, [("frozen", "inactive", 1), RULES[1]], None, "family frozen is inactive with min_present 1"),
    (WORKED, [RULES[0], ("trunk", "active", 0)], None, "family trunk has min_present 0; expected 1 to 1"),
    (WORKED, [RULES[0], ("trunk", "active", 2)], None, "family trunk has min_present 2; expected 1 to 1"),
    (WORKED, [RULES[0], ("trunk", "data_conditional", 0)], None, "family trunk has min_present 0"),
    (WORKED, [RULES[0], ("trunk", "data_conditional", 2)], None, "family trunk has min_present 2"),
    (WORKED, [RULES[0], ("trunk", "loud", 1)], None, "family trunk has the expectation loud"),
    (WORKED, RULES[1:], None, "family frozen of the manifest has no rule"),
    # the first check that fails is the one that is named
    (WORKED, RULES[1:], WORKED_DIGEST[:-1], "manifest_sha256 is"),
    ([*WORKED, ("", "k", "x")], [("trunk", "active", 9)], None, "entry 3 of the manifest has a blank"),
]


@pytest.mark.parametrize(("entries", "families", "sha256", "found"), INVALID)
def test_an_invalid_contract_is_one_error_and_judges_nothing(
    tiny: TinyStore, entries: list[Entry], families: list[tuple[str, str, int]], sha256: str | None, found: str
) -> None:
    tiny.run(contract=contract(entries, families, sha256=sha256))
    query = "SELECT code, severity, subject, message FROM health_issues WHERE code_order BETWEEN 28 AND 41"
    ((code, severity, subject, message),) = tiny.rows(query)
    assert (code, severity, subject) == ("gradient_contract_invalid", "error", None)
    assert message.startswith(found)
    assert tiny.rows("SELECT contract_valid FROM _contract_gradient_valid") == [(False,)]


def test_an_invalid_contract_is_an_error_in_every_outcome(tiny: TinyStore) -> None:
    assert judged(tiny, "gradient_contract_invalid", tree, contract=contract([], [])) == errors(None)


def test_the_validity_relation_tells_valid_from_absent(tiny: TinyStore) -> None:
    tiny.run("with", contract=contract(WORKED, RULES)).run("without")
    assert tiny.rows("FROM _contract_gradient_valid ORDER BY run_id") == [
        ("with", "complete", True, True, None, WORKED_DIGEST, 2, 2),
        ("without", "none", False, None, None, None, None, None),
    ]


def test_a_key_observed_more_than_once_is_one_error(tiny: TinyStore) -> None:
    thrice = facts({"a": "present", "b": "present", "c": "present", "a2": "missing", "a3": "missing"})
    found = judged(tiny, "gradient_manifest_duplicate_key", tree, thrice, contract=family("active", 3))
    assert found == errors("r/a")
    # the first fact of the key counts, so three members are still present
    assert contract_codes(tiny) == ["gradient_manifest_duplicate_key"]


def test_a_key_outside_the_manifest_is_an_error(tiny: TinyStore) -> None:
    extra = facts({"a": "present", "d": "present", "d2": "present"})
    found = judged(tiny, "gradient_manifest_undeclared_key", tree, extra, contract=family("active", 1, "a"))
    assert found == errors("r/d")
    assert contract_codes(tiny) == ["gradient_manifest_duplicate_key", "gradient_manifest_undeclared_key"]


def test_a_manifest_entry_never_observed_is_softened_by_failure(tiny: TinyStore) -> None:
    some = facts({"b": "present"})
    found = judged(tiny, "gradient_manifest_missing_key", tree, some, contract=family("active", 1))
    assert found == softened("r/a", "r/c")
    assert contract_codes(tiny) == ["gradient_manifest_missing_key"]


@pytest.mark.parametrize("expectation", ["active", "inactive", "data_conditional"])
def test_a_member_that_is_not_finite_is_an_error_in_any_family(tiny: TinyStore, expectation: str) -> None:
    states = facts({"a": "non_finite", "b": "non_finite", "c": "present"})
    wanted = family(expectation, 0 if expectation == "inactive" else 1)
    assert judged(tiny, "gradient_family_non_finite", tree, states, contract=wanted) == errors("f")


@pytest.mark.parametrize("state", ["present", "zero", "non_finite"])
def test_an_inactive_family_must_be_missing_altogether(tiny: TinyStore, state: str) -> None:
    states = facts({"a": "missing", "b": state, "c": "missing"})
    found = judged(tiny, "gradient_inactive_family_leakage", tree, states, contract=family("inactive", 0))
    assert found == errors("f")


def test_an_inactive_family_that_is_missing_breaks_no_rule(tiny: TinyStore) -> None:
    states = facts({"a": "missing", "b": "missing", "c": "missing"})
    assert judged(tiny, "root_count", tree, states, contract=family("inactive", 0)) == NONE
    assert contract_codes(tiny) == []


MINIMUM = {
    "active": "gradient_active_family_below_minimum",
    "data_conditional": "gradient_conditional_family_below_minimum",
}


@pytest.mark.parametrize("expectation", MINIMUM)
def test_a_family_below_its_minimum_is_an_error_when_all_members_were_seen(tiny: TinyStore, expectation: str) -> None:
    states = facts({"a": "present", "b": "zero", "c": "missing"})
    found = judged(tiny, MINIMUM[expectation], tree, states, contract=family(expectation, 2))
    assert found == errors("f")


@pytest.mark.parametrize("expectation", MINIMUM)
def test_a_failed_capture_may_not_have_reached_the_minimum(tiny: TinyStore, expectation: str) -> None:
    states = facts({"a": "present", "b": "zero"})
    found = judged(tiny, MINIMUM[expectation], tree, states, contract=family(expectation, 2))
    assert found == [[("error", "f")], [], []]


@pytest.mark.parametrize("expectation", MINIMUM)
def test_a_family_at_its_minimum_breaks_no_rule(tiny: TinyStore, expectation: str) -> None:
    states = facts({"a": "present", "b": "present", "c": "zero"})
    assert judged(tiny, MINIMUM[expectation], tree, states, contract=family(expectation, 2)) == NONE
    assert contract_codes(tiny) == []


@pytest.mark.parametrize("state", ["missing", "zero"])
def test_only_an_active_family_minds_that_none_is_present(tiny: TinyStore, state: str) -> None:
    states = facts(dict.fromkeys("abc", state))
    judged(tiny, "root_count", tree, states, contract=family("data_conditional", 2))
    assert contract_codes(tiny) == []
    other = emptied()
    assert judged(other, MINIMUM["active"], tree, states, contract=family("active", 1)) == errors("f")
