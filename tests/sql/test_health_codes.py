"""The table of codes, the meaning of blank, and the worked example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support import TinyStore

EXAMPLE = Path(__file__).parent.parent / "data" / "every-kind.jsonl"
EXPECTED = json.loads(EXAMPLE.with_name("every-kind.expected.json").read_text())
PLANE = {"op": "ops", "tensor": "tensors", "memory": "memory_events", "device_memory": "device_memory"}
PLANE |= {"device_interval": "device_intervals", "gradient": "gradients", "edge": "edges"}
PLANE |= {"tensor_stats": "tensor_stats"}

# code: severities in a complete, failed and interrupted capture (e error, w warning, - not raised)
CODES = """
    run_provenance_invalid eee / complete_with_failure_reason e-- / failed_without_reason -e-
    terminal_precedes_evidence eee / terminal_missing --e / capture_failed -w-
    duplicate_span_id eee / root_count eee / measurement_count e-- / open_span eww / unknown_parent eee
    child_outside_parent eee / span_cycle eee / unknown_span eee / empty_device_interval eee
    operation_outside_span eee / memory_outside_span eee / empty_device_memory_sample eee
    unknown_call_edge_span eee / call_edge_hierarchy_mismatch eee / call_edge_duration_mismatch eee
    empty_data_edge_endpoint eee / unknown_data_edge_tensor eee
    allocation_size_mismatch eee / duplicate_allocation eee / unpaired_free eee / retained_allocations www
    empty_gradient_event_id eee / empty_gradient_parameter_key eee / duplicate_gradient_event_id eee
    gradient_state_norm_inconsistent eee / gradient_contract_missing eee
    gradient_contract_without_complete_coverage eee / gradient_contract_invalid eee
    gradient_manifest_duplicate_key eee / gradient_manifest_undeclared_key eee / gradient_manifest_missing_key eww
    gradient_family_non_finite eee / gradient_active_family_below_minimum eee
    gradient_inactive_family_leakage eee / gradient_conditional_family_below_minimum eee
    operations_absent www / tensors_absent www / logical_memory_absent www / physical_memory_absent www
    device_timing_absent www / gradients_absent www / forward_absent www / backward_absent www / optimizer_absent www
    empty_required_semantic_label eww / duplicate_required_semantic_label eww
    required_semantic_label_cardinality eww / empty_semantic_label_classification eww
    duplicate_semantic_label_classification eww / unrequired_semantic_label_classification eww
    overlapping_semantic_label_classification eww / incomplete_semantic_label_partition eww
    capture_incomplete ---
"""


def listed() -> list[tuple[str, str]]:
    """(code, severities) in detection order."""
    entries = (entry.split() for line in CODES.strip().splitlines() for entry in line.split("/"))
    return [(code, severities) for code, severities in entries]


def test_the_codes_are_those_of_the_protocol_in_its_order(tiny: TinyStore) -> None:
    rows = tiny.rows("SELECT code, code_order FROM _health_codes ORDER BY code_order")
    assert rows == [(code, place) for place, (code, _) in enumerate(listed(), start=1)]


def test_the_severities_are_those_of_the_protocol(tiny: TinyStore) -> None:
    letter = "coalesce(left({}, 1), '-')"
    query = f"SELECT code, {letter.format('severity_complete')}, {letter.format('severity_failed')} FROM _health_codes"
    # a code that only one outcome raises shows the severity of that outcome; the rule itself asks for the outcome
    expected = {code: (text[0], text[1] if text[1] != "-" else text[2]) for code, text in listed()}
    assert {row[0]: row[1:] for row in tiny.rows(query)} == expected


def test_blank_is_the_white_space_of_unicode(tiny: TinyStore) -> None:
    tiny.con.execute(
        "CREATE OR REPLACE TEMP TABLE points AS SELECT point::INTEGER AS point FROM range(1, 55296) AS points (point)"
    )
    blank = [point for (point,) in tiny.rows("SELECT point FROM points WHERE is_blank(chr(point)) ORDER BY point")]
    spaces = [*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
    assert blank == [*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *spaces]


def test_blank_looks_at_the_whole_text(tiny: TinyStore) -> None:
    query = "SELECT is_blank(''), is_blank(' ' || chr(10) || ' '), is_blank(' x '), is_blank(chr(0)), is_blank(NULL)"
    assert tiny.rows(query) == [(True, True, False, False, None)]


def loaded(store: TinyStore, records: list[dict[str, Any]]) -> None:
    """The worked example, as the planes hold it; ``seq`` counts records."""
    ends = {row["id"]: (row["duration_ns"], seq) for seq, row in enumerate(records) if row["kind"] == "span_end"}
    contract = {"cpu_only_semantic_labels": [], **records[0]["capture_contract"]}
    ended = {"outcome": records[-1]["outcome"], "terminal_timestamp_ns": records[-1]["timestamp_ns"]}
    meta = {name: value for name, value in records[0].items() if name not in ("kind", "capture_contract", "run_id")}
    store.run(contract=contract, **{**meta, "tags": list(meta["tags"].items()), **ended})
    for seq, record in enumerate(records):
        row = {name: value for name, value in record.items() if name != "kind"} | {"seq": seq}
        if record["kind"] == "span_start":
            duration_ns, end_seq = ends[record["id"]]
            store.add("spans", {**row, "duration_ns": duration_ns, "end_seq": end_seq})
        elif record["kind"] in PLANE:
            store.add(PLANE[record["kind"]], row)


def example(store: TinyStore) -> TinyStore:
    loaded(store, [json.loads(line) for line in EXAMPLE.read_text().splitlines()])
    return store


def test_the_worked_example_has_its_three_warnings_in_order(tiny: TinyStore) -> None:
    found = example(tiny).rows("SELECT severity, code FROM health_issues ORDER BY code_order, subject")
    assert found == [(issue["severity"], issue["code"]) for issue in EXPECTED["health"]["issues"]]
    assert [code for _, code in found] == ["retained_allocations", "backward_absent", "optimizer_absent"]
    assert tiny.rows("FROM run_health") == [("r1", "complete", True, True, 0, 3, "valid")]


def test_the_worked_example_has_its_counters(tiny: TinyStore) -> None:
    result = example(tiny).con.execute("SELECT * EXCLUDE (run_id) FROM health_coverage")
    names = [column[0] for column in result.description]
    assert dict(zip(names, result.fetchone() or (), strict=True)) == EXPECTED["health"]["coverage"]


def test_the_worked_example_moved_to_a_closed_span_breaks_the_rule_it_warns_of(tiny: TinyStore) -> None:
    example(tiny).con.execute("UPDATE memory_events SET span_id = 's2' WHERE timestamp_ns = 950")
    assert tiny.rows("SELECT code, subject FROM health_issues WHERE severity = 'error'") == [
        ("memory_outside_span", "s2")
    ]
