"""Evidence packets: every value of the worked example, exact numbers, and what is left out (protocol 7.7)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from plane_store import BIG, alloc, example, expected, op, span
from store_support import EXAMPLE

from planewise.pipeline.evidence import SCHEMA, build_packets, encode_packet
from planewise.pipeline.views import views_digest
from planewise.recorder.errors import InputRefused, PlanewiseError
from support import TinyStore, emptied

KEYS = [
    "schema",
    "views_digest",
    "source",
    "provenance",
    "health",
    "capabilities",
    "findings",
    "facts",
    "gaps",
    "graph",
    "tensor_stats",
    "timing",
    "memory",
    "activations",
    "gpu",
]


def only(store: TinyStore) -> dict[str, Any]:
    [(_, packet)] = build_packets(store.con)
    return packet


@pytest.fixture(scope="module")
def packet() -> dict[str, Any]:
    """The packet of the worked example, as a reader of its file sees it."""
    found: dict[str, Any] = json.loads(encode_packet(only(example())))
    return found


def measured(store: TinyStore, run_id: str = "r1", **run: Any) -> TinyStore:
    """A complete and valid run: one measured root span m [0, 100]."""
    store.run(run_id, **run)
    span(store, "m", None, 0, 100, measured=True, end_seq=10**6, run_id=run_id)
    return store


def within(values: Any, found: Any) -> bool:
    """True when every value is in ``found`` at the same place; a null value may be absent there."""
    if isinstance(values, dict):
        return all(within(value, found.get(key)) for key, value in values.items())
    if isinstance(values, list):
        return len(values) == len(found) and all(map(within, values, found))
    return bool(values == found and type(values) is type(found))


def test_the_packet_has_the_keys_of_the_protocol_and_says_which_views_made_it(packet: dict[str, Any]) -> None:
    assert list(packet) == KEYS
    assert packet["schema"] == SCHEMA == "planewise/evidence/1"
    assert packet["views_digest"] == views_digest()


def test_provenance_is_the_run_metadata_of_the_trace(packet: dict[str, Any]) -> None:
    meta = json.loads(EXAMPLE.read_text(encoding="utf-8").partition("\n")[0])
    del meta["kind"], meta["schema"]
    assert packet["provenance"] == meta
    [(digest,)] = example().rows("SELECT source_digest FROM runs")
    assert packet["source"] == {"format": "candle-trace", "digest": digest}


def test_the_example_has_its_health(packet: dict[str, Any]) -> None:
    assert within(expected("health"), packet["health"])


def test_the_example_has_its_timing(packet: dict[str, Any]) -> None:
    assert packet["timing"] == expected("device")


def test_the_example_has_its_host_summary(packet: dict[str, Any]) -> None:
    host = expected("host")
    summary = packet["graph"]["summary"]
    assert summary["outer_wall_time_ns"] == host["outer_wall_time_ns"]
    assert summary["slowest_host_spans"] == host["slowest_host_spans"]
    self_times = {node["id"]: node["host_self_time_ns"] for node in packet["graph"]["spans"]}
    assert within(host["host_self_time_ns"], self_times)


def test_the_example_has_its_logical_memory(packet: dict[str, Any]) -> None:
    wanted = expected("logical_memory")
    found = packet["memory"]["logical"]
    live = wanted["peak"].pop("live_storages")
    assert [row["storage_id"] for row in found["peak"]["live_allocations"]] == live
    assert within(wanted, found)
    assert found["timeline"][3]["live_bytes_by_device"] == {"cuda:0": 384}
    assert "end_timestamp_ns" not in found["lifetimes"][2]
    assert all("end_timestamp_ns" not in row for row in found["peak"]["live_allocations"])
    assert found["by_device"] == [
        {
            "device": "cuda:0",
            "storage_allocation_count": 3,
            "matched_storage_free_count": 2,
            "total_allocated_bytes": 896,
            "peak_live_bytes": 768,
            "peak_timestamp_ns": 310,
        }
    ]


def test_the_example_has_its_physical_memory_and_nothing_it_did_not_observe(packet: dict[str, Any]) -> None:
    found = packet["memory"]["physical"]
    assert within(expected("physical_memory"), found)
    sample = {"timestamp_ns": 500, "device": "cuda:0", "used_bytes": 1048576, "free_bytes": 3145728}
    assert found["timeline"] == [sample]
    assert "peak_reserved_bytes" not in found["by_device"][0]


def test_the_example_has_its_node_memory(packet: dict[str, Any]) -> None:
    nodes = {node["id"]: node for node in packet["graph"]["spans"]}
    names = ("allocated_bytes", "peak_live_bytes", "residual_bytes")
    for id_, wanted in expected("node_memory").items():
        assert [nodes[id_][name] for name in names] == list(wanted.values()), id_
    for id_, size in expected("op_node_allocated_bytes").items():
        assert nodes[id_]["allocated_bytes"] == size
        assert "peak_live_bytes" not in nodes[id_]


def test_the_example_has_its_capabilities_facts_and_findings(packet: dict[str, Any]) -> None:
    levels = {field: state["level"] for field, state in packet["capabilities"].items()}
    assert list(levels.items()) == list(expected("capability_levels").items())
    facts = [[fact["code"], fact["value"]["kind"], fact["value"]["value"]] for fact in packet["facts"]]
    assert facts == expected("facts")
    assert [[row["code"], row["source"]] for row in packet["findings"]] == expected("findings")
    assert [row["qualification"] for row in packet["findings"]] == ["complete", "partial"]


def test_the_example_has_its_activations(packet: dict[str, Any]) -> None:
    wanted = expected("activations")
    del wanted["rankings"]
    assert within(wanted, packet["activations"])
    assert packet["activations"]["physical_memory_attribution"]["level"] == "unavailable"


def test_the_example_has_its_graph(packet: dict[str, Any]) -> None:
    graph = packet["graph"]
    ids = [node["id"] for node in graph["spans"]]
    tensors = ["tensor/h", "tensor/w", "tensor/x", "tensor/y"]
    assert ids == ["s1", "s2", "s3", "s3/op/0", "s4", "s4/op/0", "s5", *tensors]
    assert graph["spans"][4]["device_timings"] == [{"device": "cuda:0", "clock_id": "cuda-event:0", "busy_ns": 150}]
    assert graph["spans"][7]["name"] == "block0/hidden"
    assert "start_ns" not in graph["spans"][7]
    assert graph["gradients"] == [
        {"root": "vb", "key": "frozen.bias", "state": "missing"},
        {"root": "vb", "key": "layer.weight", "state": "present", "norm": 0.75},
    ]
    assert [(row["tensor_id"], row["dense_bytes"]) for row in graph["tensors"]] == [("h", 128)]


def test_the_example_has_recorded_and_implied_edges_in_order(packet: dict[str, Any]) -> None:
    edges = packet["graph"]["edges"]
    ends = [
        (edge.get("from_span", edge.get("from_tensor")), edge.get("to_span", edge.get("to_tensor")), edge.get("label"))
        for edge in edges
    ]
    assert ends == [
        ("s1", "s2", None),
        ("s1", "s5", None),
        ("s2", "s3", None),
        ("s3", "s3/op/0", "gelu"),
        ("s3/op/0", "tensor/y", "output"),
        ("s4", "s4/op/0", "matmul"),
        ("s4/op/0", "tensor/h", "output"),
        ("tensor/h", "s3/op/0", "input"),
        ("tensor/h", "tensor/y", None),
        ("tensor/w", "s4/op/0", "input"),
        ("tensor/x", "s4/op/0", "input"),
    ]
    assert edges[2] == {"kind": "call", "from_span": "s2", "to_span": "s3", "host_duration_ns": 400}


def test_gaps_are_sorted_warnings_and_reasons_each_once(packet: dict[str, Any]) -> None:
    gaps = packet["gaps"]
    assert all(earlier < later for earlier, later in pairwise(gaps))
    assert packet["capabilities"]["tensor_coverage"]["reason"] in gaps
    assert {row["message"] for row in packet["health"]["issues"]} <= set(gaps)


def test_gpu_evidence_is_unavailable_and_says_why(packet: dict[str, Any]) -> None:
    assert packet["gpu"] == {"status": "unavailable", "reason": "no Nsight directory was given"}


def test_a_recorded_edge_stands_for_the_one_that_nesting_implies() -> None:
    store = measured(emptied())
    span(store, "a", "m", 10, 20, end_seq=10**6)
    op(store, "a", 10, 1, inputs=["x", "x"])
    store.add("edges", {"edge_kind": "data", "from_tensor": "x", "to_tensor": "x"})
    store.add("edges", {"edge_kind": "call", "from_span": "m", "to_span": "a", "host_duration_ns": 20})
    edges = only(store)["graph"]["edges"]
    assert [edge["kind"] for edge in edges] == ["call", "call", "data", "data"]


def test_a_failed_or_invalid_capture_has_no_graph_and_no_findings_but_keeps_its_observations() -> None:
    store = measured(emptied(), "failed", outcome="failed", failure_reason="boom")
    measured(store, "invalid")
    for run_id in ("failed", "invalid"):
        store.add("memory_events", alloc(5, "s", 4, span_id="m"), run_id=run_id)
    span(store, "lost", "nobody", 10, 20, end_seq=10**6, run_id="invalid")
    packets = dict(build_packets(store.con))
    for found in packets.values():
        assert "graph" not in found
        assert found["findings"] == []
        assert found["memory"]["logical"]["peak"]["live_bytes"] == 4
    # The failed capture may still say what it saw; the invalid one may not.
    codes = {run_id: [fact["code"] for fact in found["facts"]] for run_id, found in packets.items()}
    assert codes == {"failed": ["logical_peak_live_bytes"], "invalid": []}


def test_planes_without_a_record_are_absent_and_not_empty() -> None:
    found = only(measured(emptied()))
    assert found["memory"] == {}
    assert "tensor_stats" not in found
    for absent in ("comparison_identity", "candle_version"):
        assert absent not in found["provenance"]
    assert found["provenance"]["tags"] == {}
    assert "gradient_contract" not in found["provenance"]["capture_contract"]


def test_a_memory_plane_of_unpaired_frees_alone_has_no_peak() -> None:
    store = measured(emptied())
    store.add("memory_events", {**alloc(5, "s", 4, span_id="m"), "action": "free"})
    logical = only(store)["memory"]["logical"]
    assert "peak" not in logical
    assert logical["timeline"] == [
        {"timestamp_ns": 5, "live_bytes": 0, "live_bytes_by_device": {}, "live_bytes_by_category": {}}
    ]
    assert "peak_live_bytes" not in logical["by_device"][0]


def test_activation_counts_are_null_without_a_measured_region() -> None:
    store = emptied().run()
    span(store, "m", None, 0, 100)
    profile = only(store)["activations"]
    assert profile["unattributed_activation_storages"] is None
    assert profile["operations"] == []
    assert profile["coverage"]["level"] == "unavailable"


def test_integers_are_exact_and_sums_beyond_64_bits_are_decimal_strings() -> None:
    store = emptied().run(terminal_timestamp_ns=BIG)
    span(store, "m", None, 0, BIG, measured=True, end_seq=10**6)
    op(store, "m", 0, BIG)
    values = {"span_id": "m", "op_name": "f", "category": "activation"}
    store.add("memory_events", alloc(0, "a", BIG, **values), alloc(1, "b", BIG, **values))
    found = json.loads(encode_packet(only(store)))
    logical = found["memory"]["logical"]
    assert [point["live_bytes"] for point in logical["timeline"]] == [BIG, str(2 * BIG)]
    assert logical["lifetimes"][0]["bytes"] == BIG
    [row] = found["activations"]["operations"]
    assert row["logical_byte_nanoseconds"] == str(BIG * BIG + BIG * (BIG - 1))
    assert row["observed_host_duration_ns"] == BIG
    assert found["graph"]["summary"]["outer_wall_time_ns"] == BIG


def test_byte_nanoseconds_are_a_string_whatever_their_size(packet: dict[str, Any]) -> None:
    assert [row["logical_byte_nanoseconds"] for row in packet["activations"]["operations"]] == ["128000", "151040"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_does_not_have_is_null(value: float) -> None:
    store = measured(emptied())
    row = {"span_id": "m", "label": "l", "non_finite": 1, "rms": value, "abs_max": 0.0, "mean": 0.0}
    store.add("tensor_stats", row)
    [found] = json.loads(encode_packet(only(store)))["tensor_stats"]
    assert (found["rms"], found["non_finite"]) == (None, 1)


@pytest.mark.parametrize("other", ["m/op/0", "tensor/x"])
def test_colliding_node_ids_refuse_their_run_and_no_other(other: str) -> None:
    store = emptied()
    for run_id in ("a", "b", "c"):
        measured(store, run_id)
        op(store, "m", 10, 1, inputs=["x"], run_id=run_id)
    span(store, other, "m", 10, 20, end_seq=10**6, run_id="b")
    found: list[str] = []
    with pytest.raises(InputRefused, match=other) as caught:
        found.extend(run_id for run_id, _ in build_packets(store.con))
    assert found == ["a", "c"]
    assert (caught.value.code, caught.value.source) == ("node_id_collision", "b")


def test_of_several_refused_runs_the_first_is_raised_and_names_the_others() -> None:
    store = emptied()
    for run_id in ("a", "b"):
        measured(store, run_id)
        op(store, "m", 10, 1, run_id=run_id)
        span(store, "m/op/0", "m", 10, 20, end_seq=10**6, run_id=run_id)
    with pytest.raises(PlanewiseError) as caught:
        list(build_packets(store.con))
    assert caught.value.source == "a"
    assert [note.partition(":")[0] for note in caught.value.__notes__] == ["also refused"]


def test_a_collision_in_a_capture_without_a_graph_refuses_nothing() -> None:
    store = measured(emptied(), outcome="failed", failure_reason="boom")
    op(store, "m", 10, 1)
    span(store, "m/op/0", "m", 10, 20, end_seq=10**6)
    assert "graph" not in only(store)


def test_packets_come_in_the_order_of_run_ids_and_hold_their_own_rows() -> None:
    ids = ["é", "a\0b", "b/..", "a", "Z", "\U0001f600", "\uffff"]
    store = emptied()
    for number, run_id in enumerate(ids):
        measured(store, run_id)
        for _ in range(number):
            op(store, "m", 10, 1, run_id=run_id)
    store.add("ops", {"span_id": "m", "op_name": "f", "duration_ns": 1}, run_id="ab")  # of no run
    found = [(run_id, packet["health"]["coverage"]["operations"]) for run_id, packet in build_packets(store.con)]
    assert found == sorted((run_id, number) for number, run_id in enumerate(ids))


def test_packets_do_not_depend_on_the_order_of_rows_or_on_other_runs() -> None:
    store = example()
    alone = encode_packet(only(store))
    for plane in ("ops", "spans", "memory_events", "device_intervals", "tensors", "gradients", "edges"):
        store.con.execute(f"CREATE OR REPLACE TEMP TABLE kept AS FROM {plane}; DELETE FROM {plane}")
        store.con.execute(f"INSERT INTO {plane} FROM kept ORDER BY seq DESC")
    measured(store, "another")
    assert encode_packet(dict(build_packets(store.con))["run-every-kind"]) == alone


def test_the_number_of_queries_does_not_grow_with_the_runs() -> None:
    class Counting:
        def __init__(self, con: Any) -> None:
            self.con, self.cursors = con, 0

        def cursor(self) -> Any:
            self.cursors += 1
            return self.con.cursor()

    counts = []
    for runs in (0, 1, 3):
        store = emptied()
        for number in range(runs):
            measured(store, f"r{number}")
        con = Counting(store.con)
        assert len(list(build_packets(con))) == runs  # type: ignore[arg-type]
        counts.append(con.cursors)
    assert len(set(counts)) == 1


def test_encoded_packets_are_pretty_printed_utf8_with_a_final_newline() -> None:
    store = measured(emptied(), entrypoint="é\n|")
    data = encode_packet(only(store))
    assert data.startswith(b'{\n "schema": "planewise/evidence/1",\n')
    assert data.endswith(b"}\n")
    assert json.loads(data)["provenance"]["entrypoint"] == "é\n|"
    assert encode_packet(only(store)) == data
