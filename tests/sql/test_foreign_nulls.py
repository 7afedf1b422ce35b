"""Foreign runs leave much unsaid: what is NULL there never becomes a claim, an issue or a zero."""

from __future__ import annotations

from typing import Any

from support import IDENTITY, TinyStore

UNSAID: dict[str, Any] = {"phase": None, "entrypoint": None, "timestamp": None, "capture_step": None}
UNSAID |= {"warmup_steps": None, "device": None, "timing_mode": None, "terminal_timestamp_ns": None}
UNSAID |= {"measured_region_device_synchronized": None}
SAID = {"entrypoint": "e", "phase": "infer", "capture_step": 3, "warmup_steps": 1, "device": "cpu"}
SAID |= {"timing_mode": "host", "measured_region_device_synchronized": False}


def foreign(store: TinyStore, run_id: str = "r1", *, scope: str = "unknown", **values: Any) -> TinyStore:
    """A run of another profiler that says nothing about itself but what is given."""
    row = {**UNSAID, "source_format": "kineto", "outcome": "complete", **values}
    return store.run(run_id, contract={"measurement_scope": scope}, **row)


def lawless(store: TinyStore) -> None:
    """Rows that break a rule of captures in every plane, and hold NULL wherever a foreign trace may."""
    store.add("spans", {"id": "a", "start_ns": 0, "duration_ns": 4}, {"id": "b", "start_ns": 2, "duration_ns": None})
    store.add("spans", {"id": "c", "parent_id": "a", "start_ns": 3, "duration_ns": 9})
    bare = {"span_id": None, "inputs": None, "shape": None, "dtype": None, "device": None, "input_dense_bytes": None}
    store.add("ops", {**bare, "op_name": "x", "timestamp_ns": 5, "duration_ns": 2})
    store.add("ops", {**bare, "op_name": "y", "timestamp_ns": 6, "duration_ns": None})
    event = {"span_id": None, "tensor_id": None, "shape": None, "dtype": None, "storage_id": "s"}
    store.add("memory_events", {**event, "timestamp_ns": 1, "bytes": 8, "action": "free"})
    store.add("memory_events", {**event, "timestamp_ns": 2, "bytes": 8, "action": "alloc"})
    store.add("device_intervals", {"span_id": None, "start_ns": 0, "duration_ns": 0})
    store.add("device_intervals", {"span_id": None, "start_ns": 0, "duration_ns": 3})


def test_a_foreign_run_without_lost_data_is_valid_whatever_its_rows_break(tiny: TinyStore) -> None:
    lawless(foreign(tiny))
    assert tiny.rows("FROM health_issues") == []
    assert tiny.rows("SELECT outcome, status, structurally_valid FROM run_health") == [("complete", "valid", True)]


def test_the_same_rows_break_rules_in_a_capture(tiny: TinyStore) -> None:
    lawless(tiny.run())
    codes = {code for (code,) in tiny.rows("SELECT code FROM health_issues WHERE severity = 'error'")}
    assert {"root_count", "open_span", "child_outside_parent", "empty_device_interval", "unpaired_free"} <= codes
    assert "unknown_span" not in codes  # a record that names no span names no wrong one


def test_a_foreign_run_that_lost_data_is_incomplete_and_failed(tiny: TinyStore) -> None:
    loss = {"file": "t.json", "code": "truncated", "severity": "data_loss", "message": "cut"}
    foreign(tiny, "noted").add("ingest_issues", loss, {**loss, "severity": "warning"}, run_id="noted")
    foreign(tiny, "silent", outcome=None)
    assert tiny.rows("SELECT run_id, severity, code, subject FROM health_issues ORDER BY ALL") == [
        ("noted", "warning", "capture_incomplete", None),
        ("silent", "warning", "capture_incomplete", None),
    ]
    assert tiny.rows("SELECT DISTINCT outcome, status, capture_complete FROM run_health") == [
        ("interrupted", "failed", False)
    ]


def test_data_loss_noted_for_a_capture_is_no_issue_of_foreign_traces(tiny: TinyStore) -> None:
    tiny.run().add("ingest_issues", {"file": "t", "code": "c", "severity": "data_loss", "message": "m"})
    assert tiny.rows("SELECT * FROM health_issues WHERE code = 'capture_incomplete'") == []


def test_supplied_facts_of_a_foreign_run_are_judged(tiny: TinyStore) -> None:
    foreign(tiny, capture_step=2, warmup_steps=2)
    assert tiny.rows("SELECT code, severity FROM health_issues") == [("run_provenance_invalid", "error")]


def test_an_unknown_duration_is_no_host_time_and_covers_nothing(tiny: TinyStore) -> None:
    lawless(foreign(tiny))
    query = "SELECT node_id, host_total_time_ns, host_self_time_ns FROM host_self_time ORDER BY node_id"
    assert tiny.rows(query) == [
        ("/op/0", 2, 2),
        ("/op/1", None, None),
        ("a", 4, 0),
        ("b", None, None),
        ("c", 9, 9),
    ]


def test_a_node_without_an_end_does_not_fill_the_measured_window(tiny: TinyStore) -> None:
    # window [0, 10); one op [2, 5), one op from 6 on without an end
    foreign(tiny).add("spans", {"id": "m", "start_ns": 0, "duration_ns": 10, "measured": True})
    tiny.add("ops", {"span_id": "m", "op_name": "x", "timestamp_ns": 2, "duration_ns": 3})
    tiny.add("ops", {"span_id": "m", "op_name": "y", "timestamp_ns": 6, "duration_ns": None})
    assert tiny.rows("SELECT id, measured_overlap_self_time_ns FROM slowest_host") == [("m", 7)]


def test_work_that_names_no_span_is_busy_on_its_clock_and_on_no_span(tiny: TinyStore) -> None:
    lawless(foreign(tiny))
    assert tiny.rows("SELECT interval_count, busy_ns FROM device_clock_busy") == [(2, 3)]
    assert tiny.rows("FROM device_span_busy") == []


def test_a_storage_without_a_tensor_has_no_tensor_ids(tiny: TinyStore) -> None:
    lawless(foreign(tiny))
    query = "SELECT tensor_ids, allocation_span_id, bytes, start_timestamp_ns FROM storage_lifetimes"
    assert tiny.rows(query) == [(None, None, 8, 2)]
    assert tiny.rows("SELECT peak_live_bytes FROM live_bytes_peak WHERE device IS NULL") == [(8,)]


def test_a_foreign_run_claims_no_structure_and_no_wall_time(tiny: TinyStore) -> None:
    lawless(foreign(tiny))
    levels = dict(tiny.rows("SELECT field, level FROM capabilities"))
    assert {name for name, level in levels.items() if level in ("complete", "invalid")} == set()
    assert levels["structural_trace"] == levels["outer_wall_time"] == "unavailable"
    assert {name for name, level in levels.items() if level == "partial"} == {
        "nested_host_time",
        "nested_device_time",
        "operation_coverage",
        "logical_memory_coverage",
    }
    assert tiny.rows("SELECT DISTINCT level FROM activation_capabilities") == [("unavailable",)]
    assert tiny.rows("SELECT outer_wall_time_ns FROM outer_wall_time") == [(None,)]


def test_what_a_reader_told_from_the_rows_is_no_word_of_the_producer(tiny: TinyStore) -> None:
    foreign(tiny)
    tiny.con.execute("UPDATE runs SET capture_contract = struct_update(capture_contract, device_timing := 'partial')")
    tiny.add("device_intervals", {"start_ns": 0, "duration_ns": 1})
    query = "SELECT level, reason FROM capabilities WHERE field = 'nested_device_time'"
    assert tiny.rows(query) == [("partial", "device timing was recorded, but its coverage was not declared")]


def test_a_supplied_measured_span_gives_an_outer_wall_time(tiny: TinyStore) -> None:
    foreign(tiny).add("spans", {"id": "m", "start_ns": 0, "duration_ns": 10, "measured": True})
    query = "SELECT level, source FROM capabilities WHERE field = 'outer_wall_time'"
    assert tiny.rows(query) == [("complete", "supplied measured span")]
    assert tiny.rows("SELECT level FROM capabilities WHERE field = 'structural_trace'") == [("unavailable",)]


def test_an_operation_of_unknown_duration_has_no_host_rank(tiny: TinyStore) -> None:
    foreign(tiny).add("spans", {"id": "m", "start_ns": 0, "duration_ns": 10, "measured": True})
    for op, duration in (("x", None), ("y", 3)):
        tiny.add("ops", {"span_id": "m", "op_name": op, "output": f"t{op}", "duration_ns": duration})
        tiny.add("tensors", {"span_id": "m", "tensor_id": f"t{op}", "category": "activation"})
    assert tiny.rows("SELECT name, host_rank FROM activation_hotspots ORDER BY name") == [("x", None), ("y", 1)]


def compared(store: TinyStore, **values: Any) -> dict[str, str]:
    """Reasons (code: message of the first) of five foreign runs against five others that state ``values``."""
    store.add("comparisons", {"comparison_id": "c"})
    for cohort in ("baseline", "candidate"):
        for position in range(5):
            run_id = f"{cohort}{position}"
            foreign(store, run_id, **values)
            store.add("spans", {"id": "m", "duration_ns": 5, "measured": True}, run_id=run_id)
            receipt = {"receipt_run_id": run_id, "manifest_sha256": f"{len(cohort) * 10 + position:064x}"}
            store.add(
                "cohort_members",
                {"comparison_id": "c", "cohort": cohort, "position": position, **receipt},
                run_id=run_id,
            )
    query = "SELECT code, message FROM comparison_reasons ORDER BY reason_order DESC"
    return dict(store.rows(query))


def test_foreign_runs_do_not_compare_and_say_why(tiny: TinyStore) -> None:
    reasons = compared(tiny)
    assert reasons.keys() >= {
        "not_production_equivalent",
        "unsynchronized_device_region",
        "identity_missing",
        "capture_semantics_mismatch",
    }
    assert "baseline0 does not state entrypoint, phase, device" in reasons["capture_semantics_mismatch"]
    assert tiny.rows("SELECT comparable FROM comparison_summary") == [(False,)]


def test_supplied_identity_and_scope_leave_the_unstated_facts_as_a_reason(tiny: TinyStore) -> None:
    reasons = compared(tiny, scope="production_equivalent", comparison_identity=IDENTITY, device="cpu")
    assert reasons.keys() == {"capture_semantics_mismatch"}


def test_foreign_runs_compare_when_everything_was_supplied(tiny: TinyStore) -> None:
    assert compared(tiny, scope="production_equivalent", comparison_identity=IDENTITY, **SAID) == {}


def test_a_run_that_states_no_entrypoint_is_not_what_a_campaign_planned(tiny: TinyStore) -> None:
    foreign(tiny)
    tiny.add(
        "campaign_planned",
        {"campaign_id": "k", "entrypoint": "e", "position": 0, "capture_step": 3, "bundle": "b"},
        run_id=None,
    )
    tiny.add("bundle_checks", {"campaign_id": "k", "bundle": "b", "run_id": "r1", "manifest_sha256": "0"})
    query = "SELECT state, message FROM campaign_status"
    assert tiny.rows(query) == [("identity_mismatch", "the run has entrypoint (not stated); the manifest has e")]
    assert tiny.rows("FROM series_outer_wall_time") == []
