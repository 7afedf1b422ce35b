"""Packets do not grow with their run: every list is cut in SQL, says its total, and keeps the rows that matter most."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plane_store import alloc, op, span

from planewise.pipeline.evidence import build_packets, encode_packet
from planewise.pipeline.report import render_report
from planewise.recorder.errors import InputRefused
from support import TinyStore, emptied

MANY = 130
"""More than any list of a packet shows."""


def only(store: TinyStore) -> dict[str, Any]:
    [(_, packet)] = build_packets(store.con)
    return packet


def measured(**run: Any) -> TinyStore:
    """A complete run with the measured root m [0, 10000)."""
    store = emptied().run(**run)
    span(store, "m", None, 0, 10_000, measured=True, end_seq=10**6)
    return store


def crowded(count: int) -> TinyStore:
    """A valid run with ``count`` of everything; number n costs n + 1 of each metric."""
    store = measured()
    for n in range(count):
        span(store, f"s{n:03}", "m", 0, n + 1, span_kind="op", end_seq=10**6)
        span(store, f"f{n:03}", "m", 0, n + 1, end_seq=10**6)
    store.add("memory_events", *[alloc(0, f"y{n}", 0, span_id=f"f{n:03}") for n in range(count)])
    everywhere = [(n, f"s{n:03}") for n in range(count)]
    values = {"category": "activation", "op_name": "f"}
    rows = [
        {"span_id": id_, "op_name": "f", "timestamp_ns": 0, "duration_ns": n + 1, "output": id_}
        for n, id_ in everywhere
    ]
    store.add("ops", *rows)
    store.add("memory_events", *[alloc(0, f"x{n}", n + 1, span_id=id_, **values) for n, id_ in everywhere])
    store.add("device_intervals", *[{"span_id": id_, "start_ns": 0, "duration_ns": n + 1} for n, id_ in everywhere])
    clocks = [{"span_id": "m", "clock_id": f"c{n}", "start_ns": 0, "duration_ns": 1} for n in range(count)]
    store.add("device_intervals", *clocks)
    store.add("device_memory", *[{"device": f"d{n:03}", "timestamp_ns": 1, "used_bytes": n} for n in range(count)])
    return store


def bounded_lists(value: Any, path: str = "") -> dict[str, dict[str, Any]]:
    """Every bounded list of a packet by its path."""
    if isinstance(value, list):
        return {key: item for row in value for key, item in bounded_lists(row, path).items()}
    if not isinstance(value, dict):
        return {}
    found = {path: value} if "truncated" in value else {}
    for key, item in value.items():
        found |= bounded_lists(item, f"{path}/{key}")
    return found


def test_every_list_states_its_total_and_shows_no_more_than_its_bound() -> None:
    found = bounded_lists(only(crowded(MANY)))
    sizes = {path: (row["total"], row["displayed"]) for path, row in found.items() if row["truncated"]}
    assert sizes == {
        "/graph/summary/slowest_host_spans": (MANY + 1, 8),
        "/graph/summary/slowest_device_spans": (2 * MANY, 8),
        "/graph/summary/heaviest_spans": (MANY, 8),
        "/timing/device_spans": (2 * MANY, 50),
        "/timing/device_clocks": (MANY + 1, 50),
        "/memory/logical/peak/live_allocations": (2 * MANY, 50),
        "/memory/physical/by_device": (MANY, 50),
        "/activations/rankings/host": (MANY, 20),
        "/activations/rankings/logical_allocated": (MANY, 20),
        "/activations/rankings/logical_byte_nanoseconds": (MANY, 20),
        "/activations/rankings/device/rows": (MANY, 20),
    }
    assert all(row["displayed"] == len(row["rows"]) for row in found.values())


def test_rankings_keep_the_largest() -> None:
    packet = only(crowded(MANY))
    host = packet["activations"]["rankings"]["host"]["rows"]
    assert [row["observed_host_duration_ns"] for row in host] == [MANY - n for n in range(20)]
    live = packet["memory"]["logical"]["peak"]["live_allocations"]["rows"]
    assert [row["bytes"] for row in live] == [MANY - n for n in range(50)]
    assert [row["busy_ns"] for row in packet["timing"]["device_spans"]["rows"]] == [MANY - n for n in range(50)]


def test_a_packet_hardly_grows_with_its_run() -> None:
    small, large = (len(encode_packet(only(crowded(count)))) for count in (60, 400))
    assert large < 1.02 * small


def test_of_many_issues_errors_come_first_and_the_counts_cover_all() -> None:
    store = measured()
    for n in range(MANY):
        span(store, f"lost{n:03}", "nobody", 10, 20, end_seq=10**6)
    store.add("memory_events", alloc(5, "s", 4, span_id="m"))
    health = only(store)["health"]
    counts = {row["code"]: row["count"] for row in health["issue_counts"]}
    total = health["error_count"] + health["warning_count"]
    assert sum(counts.values()) == total == health["issues"]["total"] > MANY
    assert (health["issues"]["displayed"], len(health["issues"]["rows"])) == (100, 100)
    assert {row["severity"] for row in health["issues"]["rows"]} == {"error"}
    assert health["warning_count"] > 0
    rows = store.rows("SELECT severity, code, count(*) FROM health_issues GROUP BY ALL")
    assert sorted(rows) == sorted((row["severity"], row["code"], row["count"]) for row in health["issue_counts"])


def test_many_warnings_of_one_kind_are_one_gap_beside_every_reason() -> None:
    store = measured(outcome="failed", failure_reason="boom")
    for n in range(MANY):
        span(store, f"open{n:03}", "m", 10, None)
    packet = only(store)
    reasons = {state["reason"] for state in packet["capabilities"].values() if state["level"] != "complete"}
    warnings = {message for (message,) in store.rows("SELECT DISTINCT message FROM health_issues")}
    assert packet["health"]["warning_count"] > MANY
    assert packet["gaps"]["rows"] == sorted(reasons | warnings)
    assert not packet["gaps"]["truncated"]


def test_a_report_says_when_gaps_were_cut() -> None:
    packet = only(measured())
    packet["gaps"] = {"total": 7, "displayed": 1, "truncated": True, "rows": ["nothing was seen"]}
    assert render_report(packet).splitlines()[-3:] == [
        "- nothing was seen",
        "",
        "1 of 7 gaps are shown; `planewise query --kind health` shows all.",
    ]


def test_a_gradient_contract_keeps_its_digest_and_the_size_of_its_lists() -> None:
    expected = [{"root": "r", "key": f"k{n}", "family": "f"} for n in range(MANY)]
    families = [{"family": f"f{n}", "expectation": "required", "min_present": 0} for n in range(MANY)]
    gradients = {"manifest_sha256": "sha256:0", "expected": expected, "families": families}
    contract = only(measured(contract={"gradient_contract": gradients}))["provenance"]["capture_contract"]
    assert contract["gradient_contract"]["manifest_sha256"] == "sha256:0"
    for name, rows in (("expected", expected), ("families", families)):
        listed = {"total": MANY, "displayed": 20, "truncated": True, "rows": rows[:20]}
        assert contract["gradient_contract"][name] == listed


@pytest.mark.parametrize(
    ("claimant", "operation", "tensor", "kinds"),
    [
        ("m/op/0", "m", "t", "function and op"),
        ("tensor/t", "m", "t", "function and tensor"),
        ("tensor/a", "tensor/a", "a/op/0", "op and tensor"),
    ],
)
def test_every_pair_of_kinds_that_can_share_an_id_is_refused(
    claimant: str, operation: str, tensor: str, kinds: str
) -> None:
    store = measured()
    span(store, claimant, "m", 0, 10, end_seq=10**6)
    op(store, operation, 0, 1, output=tensor)
    with pytest.raises(InputRefused, match=kinds):
        only(store)


def test_an_id_that_only_looks_made_is_no_collision() -> None:
    store = measured()
    for id_ in ("m/op/7", "tensor/none", "/op/"):
        span(store, id_, "m", 0, 10, end_seq=10**6)
    op(store, "m", 0, 1, output="t")
    assert only(store)["graph"]["nodes"] == {"spans": 4, "operations": 1, "tensors": 1}


def test_a_packet_is_valid_json_of_the_same_value() -> None:
    packet = only(crowded(3))
    assert json.loads(encode_packet(packet)) == packet
