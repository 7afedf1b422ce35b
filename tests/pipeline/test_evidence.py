"""Evidence packets: every value of the worked example, exact numbers, and what is left out (protocol 7.7)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from plane_store import BIG, alloc, example, expected, free, op, span
from store_support import EXAMPLE

from planewise.pipeline.evidence import SCHEMA, build_packets, encode_packet
from planewise.pipeline.evidence_rows import exact
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


def listed(rows: list[Any]) -> dict[str, Any]:
    """The bounded form of a list that was not cut."""
    return {"total": len(rows), "displayed": len(rows), "truncated": False, "rows": rows}


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
    contract = meta["capture_contract"]["gradient_contract"]
    contract |= {name: listed(contract[name]) for name in ("expected", "families")}
    assert packet["provenance"] == meta
    [(digest,)] = example().rows("SELECT source_digest FROM runs")
    assert packet["source"] == {"format": "candle-trace", "digest": digest}


def test_the_example_has_its_health(packet: dict[str, Any]) -> None:
    wanted = expected("health")
    codes = [issue["code"] for issue in wanted["issues"]]
    wanted["issues"] = listed(wanted["issues"])
    assert within(wanted, packet["health"])
    assert packet["health"]["issue_counts"] == [{"severity": "warning", "code": code, "count": 1} for code in codes]
    assert (packet["health"]["error_count"], packet["health"]["warning_count"]) == (0, 3)


def test_the_example_has_its_timing_with_the_busiest_span_first(packet: dict[str, Any]) -> None:
    wanted = expected("device")
    assert packet["timing"] == {
        "device_coverage": wanted["device_coverage"],
        "device_spans": listed(wanted["device_spans"][::-1]),
        "device_clocks": listed(wanted["device_clocks"]),
    }


def test_the_example_has_its_host_summary(packet: dict[str, Any]) -> None:
    host = expected("host")
    summary = packet["graph"]["summary"]
    assert summary["outer_wall_time_ns"] == host["outer_wall_time_ns"]
    assert summary["slowest_host_spans"] == listed(host["slowest_host_spans"])
    device = {"id": "s4", "name": "block0", "device": "cuda:0", "clock_id": "cuda-event:0", "device_busy_ns": 150}
    assert [row["id"] for row in summary["slowest_device_spans"]["rows"]] == ["s4", "s3"]
    assert within(
        {**device, "name": summary["slowest_device_spans"]["rows"][0]["name"]},
        summary["slowest_device_spans"]["rows"][0],
    )


def test_the_example_has_its_logical_memory(packet: dict[str, Any]) -> None:
    wanted = expected("logical_memory")
    found = packet["memory"]["logical"]
    live = wanted["peak"].pop("live_storages")
    assert [row["storage_id"] for row in found["peak"]["live_allocations"]["rows"]] == live
    # Every point and lifetime is in the planes; tests of live_bytes and storage_lifetimes hold them to the example.
    del wanted["timeline"], wanted["lifetimes"]
    assert within(wanted, found)
    assert found["peak"]["live_bytes_by_device"] == listed([{"device": "cuda:0", "live_bytes": 768}])
    assert all("end_timestamp_ns" not in row for row in found["peak"]["live_allocations"]["rows"])
    device = {
        "device": "cuda:0",
        "storage_allocation_count": 3,
        "matched_storage_free_count": 2,
        "total_allocated_bytes": 896,
        "peak_live_bytes": 768,
        "peak_timestamp_ns": 310,
    }
    assert found["by_device"] == listed([device])


def test_the_example_has_its_physical_memory_and_nothing_it_did_not_observe(packet: dict[str, Any]) -> None:
    found = packet["memory"]["physical"]
    assert within(listed(expected("physical_memory")["by_device"]), found["by_device"])
    assert "peak_reserved_bytes" not in found["by_device"]["rows"][0]


def test_the_example_has_the_node_memory_of_its_heaviest_spans(packet: dict[str, Any]) -> None:
    wanted = expected("node_memory")
    heaviest = packet["graph"]["summary"]["heaviest_spans"]
    found = {row["id"]: (row["allocated_bytes"], row["peak_live_bytes"]) for row in heaviest["rows"]}
    assert [row["id"] for row in heaviest["rows"]] == ["s3", "s2"]
    for id_, values in found.items():
        assert values == (wanted[id_]["direct_allocated_bytes"], wanted[id_]["subtree_peak_live_bytes"]), id_


def test_the_example_has_its_capabilities_facts_and_findings(packet: dict[str, Any]) -> None:
    levels = {field: state["level"] for field, state in packet["capabilities"].items()}
    assert list(levels.items()) == list(expected("capability_levels").items())
    facts = [[fact["code"], fact["value"]["kind"], fact["value"]["value"]] for fact in packet["facts"]]
    assert facts == expected("facts")
    assert [[row["code"], row["source"]] for row in packet["findings"]] == expected("findings")
    assert [row["qualification"] for row in packet["findings"]] == ["complete", "partial"]


def test_the_example_has_its_activations(packet: dict[str, Any]) -> None:
    wanted, found = expected("activations"), packet["activations"]
    operations = {row["id"]: row for row in wanted["operations"]}
    rankings = found["rankings"]
    assert found["unattributed_activation_storages"] == wanted["unattributed_activation_storages"]
    assert found["operations"] == len(operations)
    for metric in ("host", "dense_output", "logical_allocated", "logical_byte_nanoseconds"):
        for row in operations.values():
            row.pop("device_timings", None)
        assert rankings[metric] == listed([operations[id_] for id_ in wanted["rankings"][metric]])
    assert found["physical_memory_attribution"]["level"] == "unavailable"


def test_the_example_has_one_device_ranking_for_each_clock(packet: dict[str, Any]) -> None:
    wanted = expected("activations")
    [timing] = wanted["operations"][0]["device_timings"]
    del timing["device"], timing["clock_id"]
    ranking = {"device": "cuda:0", "clock_id": "cuda-event:0", **listed([{"id": "s4", **timing}])}
    assert packet["activations"]["rankings"]["device"] == listed([ranking])
    assert list(wanted["rankings"]["device"].values()) == [["s4"]]


def test_the_example_has_the_size_of_its_graph(packet: dict[str, Any]) -> None:
    # s1 to s5; one operation in s3 and one in s4; the tensors h, w, x and y.
    assert packet["graph"]["nodes"] == {"spans": 5, "operations": 2, "tensors": 4}
    counts = {"total": 2, "present": 1, "missing": 1, "zero": 0, "non_finite": 0}
    assert packet["graph"]["gradients"] == counts


def test_the_example_has_its_tensor_statistics_counted(packet: dict[str, Any]) -> None:
    rows = example().rows("SELECT label, non_finite FROM tensor_stats")
    non_finite = sum(count > 0 for _, count in rows)
    labels = len({label for label, _ in rows})
    assert packet["tensor_stats"] == {"events": len(rows), "non_finite_events": non_finite, "labels": labels}
    assert rows


def test_gaps_are_sorted_warnings_and_reasons_each_once(packet: dict[str, Any]) -> None:
    gaps = packet["gaps"]["rows"]
    assert packet["gaps"]["total"] == len(gaps)
    assert all(earlier < later for earlier, later in pairwise(gaps))
    assert packet["capabilities"]["tensor_coverage"]["reason"] in gaps
    assert {row["message"] for row in packet["health"]["issues"]["rows"]} <= set(gaps)


def test_gpu_evidence_is_unavailable_and_says_why(packet: dict[str, Any]) -> None:
    assert packet["gpu"] == {"status": "unavailable", "reason": "no Nsight directory was given"}


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
    assert logical["storage_allocation_count"] == 0
    assert "peak_live_bytes" not in logical["by_device"]["rows"][0]


def test_a_peak_of_nothing_is_zero_and_lists_nothing() -> None:
    store = measured(emptied())
    store.add("memory_events", alloc(5, "s", 4, span_id="m"), free(5, "s", 4))
    peak = only(store)["memory"]["logical"]["peak"]
    assert (peak["live_bytes"], peak["live_bytes_by_category"]) == (0, {})
    assert peak["live_allocations"] == peak["live_bytes_by_device"] == listed([])


def test_activation_counts_are_null_without_a_measured_region() -> None:
    store = emptied().run()
    span(store, "m", None, 0, 100)
    profile = only(store)["activations"]
    assert profile["unattributed_activation_storages"] is None
    assert profile["operations"] is None
    assert profile["rankings"]["host"] == listed([])
    assert profile["coverage"]["level"] == "unavailable"


def test_integers_are_exact_and_sums_beyond_64_bits_are_decimal_strings() -> None:
    store = emptied().run(terminal_timestamp_ns=BIG)
    span(store, "m", None, 0, BIG, measured=True, end_seq=10**6)
    op(store, "m", 0, BIG)
    values = {"span_id": "m", "op_name": "f", "category": "activation"}
    store.add("memory_events", alloc(0, "a", BIG, **values), alloc(1, "b", BIG, **values))
    found = json.loads(encode_packet(only(store)))
    logical = found["memory"]["logical"]
    assert logical["peak"]["live_bytes"] == logical["total_allocated_bytes"] == str(2 * BIG)
    assert logical["peak"]["live_bytes_by_device"]["rows"] == [{"device": "cpu", "live_bytes": str(2 * BIG)}]
    assert logical["peak"]["live_allocations"]["rows"][0]["bytes"] == BIG
    [row] = found["activations"]["rankings"]["host"]["rows"]
    assert row["logical_byte_nanoseconds"] == str(BIG * BIG + BIG * (BIG - 1))
    assert row["observed_host_duration_ns"] == BIG
    assert found["graph"]["summary"]["outer_wall_time_ns"] == BIG


def test_byte_nanoseconds_are_a_string_whatever_their_size(packet: dict[str, Any]) -> None:
    rows = packet["activations"]["rankings"]["host"]["rows"]
    assert [row["logical_byte_nanoseconds"] for row in rows] == ["128000", "151040"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63])
def test_a_value_that_json_readers_do_not_have_is_replaced_wherever_it_is_nested(value: float) -> None:
    wanted = str(value) if isinstance(value, int) else None
    assert exact({"rows": [{"value": value}], "kept": [1, 0.5, True, "x"]}) == {
        "rows": [{"value": wanted}],
        "kept": [1, 0.5, True, "x"],
    }


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
