"""Rules about call and data edges."""

from __future__ import annotations

from typing import Any

import pytest
from health_support import NONE, Add, errors, judged, tree

from support import TinyStore


def call(from_span: str, to_span: str, duration: int) -> Any:
    """A build step that adds one call edge; in ``tree`` s1 calls s2 for 80 ns."""
    row = {"edge_kind": "call", "from_span": from_span, "to_span": to_span, "host_duration_ns": duration}
    return lambda add: add("edges", row)


def data(from_tensor: str, to_tensor: str) -> Any:
    """A build step that adds one data edge."""
    return lambda add: add("edges", {"edge_kind": "data", "from_tensor": from_tensor, "to_tensor": to_tensor})


def known(add: Add) -> None:
    """Tensor x, and an operation reading y and writing z."""
    add("tensors", {"span_id": "s2", "tensor_id": "x"})
    add("ops", {"span_id": "s2", "op_name": "f", "inputs": ["y"], "output": "z", "timestamp_ns": 20, "duration_ns": 1})


def edge_codes(store: TinyStore) -> set[str]:
    query = "SELECT code FROM health_issues WHERE code_order BETWEEN 19 AND 23"
    return {code for (code,) in store.rows(query)}


@pytest.mark.parametrize(("ends", "subject"), [(("s9", "s2"), "s9->s2"), (("s1", "s9"), "s1->s9")])
def test_a_call_edge_to_no_span_is_judged_no_further(tiny: TinyStore, ends: tuple[str, str], subject: str) -> None:
    assert judged(tiny, "unknown_call_edge_span", tree, call(*ends, 1)) == errors(subject)
    assert edge_codes(tiny) == {"unknown_call_edge_span"}


def test_a_call_edge_must_follow_the_hierarchy(tiny: TinyStore) -> None:
    assert judged(tiny, "call_edge_hierarchy_mismatch", tree, call("s2", "s1", 100)) == errors("s2->s1")
    assert edge_codes(tiny) == {"call_edge_hierarchy_mismatch"}


def test_a_call_edge_must_last_as_long_as_the_called_span(tiny: TinyStore) -> None:
    assert judged(tiny, "call_edge_duration_mismatch", tree, call("s1", "s2", 79)) == errors("s1->s2")
    assert edge_codes(tiny) == {"call_edge_duration_mismatch"}


def test_a_call_edge_can_break_both_rules(tiny: TinyStore) -> None:
    judged(tiny, "root_count", tree, call("s2", "s1", 1))
    assert edge_codes(tiny) == {"call_edge_hierarchy_mismatch", "call_edge_duration_mismatch"}


def test_a_right_call_edge_and_one_to_an_open_span_break_no_rule(tiny: TinyStore) -> None:
    opened = {"id": "s3", "parent_id": "s1", "start_ns": 50}
    steps = (tree, lambda add: add("spans", opened), call("s1", "s2", 80), call("s1", "s3", 7))
    assert judged(tiny, "call_edge_duration_mismatch", *steps) == NONE
    assert edge_codes(tiny) == set()


@pytest.mark.parametrize("ends", [("", "x"), ("x", ""), ("", "")])
def test_an_empty_data_edge_end_is_also_an_unknown_tensor(tiny: TinyStore, ends: tuple[str, str]) -> None:
    subject = "->".join(ends)
    assert judged(tiny, "empty_data_edge_endpoint", tree, known, data(*ends)) == errors(subject)
    query = "SELECT subject FROM health_issues WHERE code = 'unknown_data_edge_tensor'"
    assert tiny.rows(query) == [(subject,)] * 3


@pytest.mark.parametrize("ends", [("x", "q"), ("q", "x"), ("p", "q"), (" ", "x")])
def test_a_data_edge_end_that_no_record_names_is_one_error_an_edge(tiny: TinyStore, ends: tuple[str, str]) -> None:
    assert judged(tiny, "unknown_data_edge_tensor", tree, known, data(*ends)) == errors("->".join(ends))
    assert edge_codes(tiny) == {"unknown_data_edge_tensor"}


@pytest.mark.parametrize("ends", [("x", "y"), ("y", "z"), ("z", "x")])
def test_tensors_operation_inputs_and_outputs_are_known(tiny: TinyStore, ends: tuple[str, str]) -> None:
    assert judged(tiny, "unknown_data_edge_tensor", tree, known, data(*ends)) == NONE


def test_a_tensor_of_another_run_is_unknown(tiny: TinyStore) -> None:
    tiny.run("other").add("tensors", {"span_id": "s", "tensor_id": "x"}, run_id="other")
    assert judged(tiny, "unknown_data_edge_tensor", tree, data("x", "x")) == errors("x->x")
