"""Stormlog artifacts: every record has one fate, contexts are defined before they are used, damage costs its line."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mutate import mutant

from planewise.ingest.base import detect_format
from planewise.ingest.stormlog import StormlogReader
from planewise.recorder.errors import InputRefused

DATA = Path(__file__).parents[1] / "data" / "stormlog"
CONTEXT = {
    "run_id": "r",
    "session_id": "s",
    "producer_id": "p",
    "source": "x",
    "clock_domain": "c",
    "clock_kind": "device",
    "collection_mode": "active",
    "provenance": "observed",
    "host": "h",
    "pid": 1,
}
ACTIVITY = {
    "schema_version": 2,
    "event_type": "infer.activity_ref",
    "event_id": "e",
    "context": CONTEXT,
    "metadata": {},
    "activity_ref": {"producer_id": "p", "id": "a"},
    "activity_kind": "gpu_kernel",
    "activity_domain": "gpu",
    "attribution_status": "unresolved",
    "iteration_ref": None,
    "start_ns": 10,
    "end_ns": 30,
}


def read(path: Path) -> dict[str, list[dict[str, Any]]]:
    planes: dict[str, list[dict[str, Any]]] = {}
    for part in StormlogReader().read(path):
        planes.setdefault(part.plane, []).extend(part.table.to_pylist())
    return planes


def of(folder: Path, *records: Any) -> dict[str, list[dict[str, Any]]]:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in (ACTIVITY, *records)))
    return read(path)


def issues(planes: dict[str, list[dict[str, Any]]]) -> list[tuple[str, int]]:
    return [(row["message"], row["line"]) for row in planes.get("ingest_issues", [])]


def test_the_example_of_the_protocol_is_read_whole() -> None:
    assert detect_format(DATA / "run.jsonl").name == "stormlog"
    planes = read(DATA / "run.jsonl")
    assert (len(planes["activities"]), len(planes["engine_events"])) == (18, 19)
    assert "ingest_issues" not in planes
    (run,) = planes["runs"]
    assert (dict(run["tags"]), run["outcome"], run["source_version"]) == (
        {"stormlog.run_id": "run-demo"},
        "complete",
        "4",
    )
    graph = next(row for row in planes["activities"] if row["activity_id"] == "demo.trace/gpu:k4-graph")
    assert (graph["start_ns"], graph["duration_ns"]) == (25000, 6000)
    assert (graph["interval_offsets"], graph["interval_durations"]) == ([0, 4000], [1000, 2000])
    request = next(row for row in planes["engine_events"] if row["request_id"] == "demo.engine/r1")
    assert (request["start_ns"], request["duration_ns"]) == (1000, 8000)
    assert json.loads(request["attributes"])["kv_bytes"] == 4096


def test_an_absent_component_is_a_record_and_no_silence() -> None:
    events = read(DATA / "bare.jsonl")["engine_events"]
    found = {
        json.loads(row["attributes"])["component"]: json.loads(row["attributes"])["available"]
        for row in events
        if row["event_type"] == "infer.capabilities"
    }
    assert found["trace_collector"] is False


def test_legacy_records_are_kept_apart_from_events_of_their_name(tmp_path: Path) -> None:
    planes = of(tmp_path, {"event_type": "infer.request", "session_id": "s", "request_id": "x"})
    (legacy,) = planes["engine_events"]
    assert (legacy["event_type"], legacy["request_id"]) == ("infer.request (legacy)", None)
    assert json.loads(legacy["attributes"])["request_id"] == "x"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 5}, "found schema_version 5"),
        ({"schema_version": True}, "found schema_version True"),
        ({"event_type": "other"}, "found event_type 'other'"),
        ({"event_type": "infer.odd"}, "no type of schema version"),
        ({"context": {**CONTEXT, "more": 1}}, "unknown field"),
        ({"context": {**CONTEXT, "clock_kind": "sun"}}, "has 'sun'"),
        ({"context": {**CONTEXT, "pid": -1}}, "below 0"),
        ({"context_id": "ctx-1"}, "exactly one of"),
        ({"context": None, "context_id": "ctx-1"}, "has its context in itself"),
        ({"context": None, "context_id": "ctx-1", "schema_version": 4}, "not defined before"),
        ({"attribution_status": "linked"}, "does not agree"),
        ({"end_ns": 5}, "before its start"),
        ({"stream_id": -1}, "found stream_id -1"),
        ({"cuda_correlation_id": 2**63}, "found cuda_correlation_id"),
        ({"metadata": {"intervals": [[5, 2], [6, 1]]}}, "sorted, disjoint"),
        ({"metadata": {"intervals": [[5, 20]]}}, "beyond its span"),
        ({"metadata": {"intervals": []}}, "at least one"),
    ],
)
def test_a_record_that_breaks_the_format_costs_itself(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    record = {name: value for name, value in {**ACTIVITY, **change}.items() if value is not None or name != "context"}
    planes = of(tmp_path, record)
    ((found, line),) = issues(planes)
    assert message in found
    assert line == 2
    assert len(planes["activities"]) == 1
    assert planes["runs"][0]["outcome"] is None


def test_a_context_is_one_thing(tmp_path: Path) -> None:
    define = {"schema_version": 4, "event_type": "infer.context", "context_id": "ctx-1", "context": CONTEXT}
    other = {**define, "context": {**CONTEXT, "host": "other"}}
    use = {**ACTIVITY, "schema_version": 4, "context_id": "ctx-1"}
    del use["context"]
    planes = of(tmp_path, define, define, use, other)
    assert len(planes["activities"]) == 2
    ((message, line),) = issues(planes)
    assert (line, "defined before with another content" in message) == (5, True)


def test_a_cut_stream_keeps_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress((DATA / "run.jsonl").read_bytes())[:-40])
    planes = read(path)
    assert planes["runs"][0]["outcome"] is None
    assert "stream_damaged" in {row["code"] for row in planes["ingest_issues"]}


def test_a_file_without_events_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"event_type": "infer.x", "schema_version": 9}\n')
    assert detect_format(path).name == "stormlog"
    with pytest.raises(InputRefused, match="holds no event"):
        read(path)


def test_mutants_are_counted_or_refused(tmp_path: Path) -> None:
    rng, whole, path = random.Random(8), (DATA / "run.jsonl").read_bytes(), tmp_path / "m.jsonl"
    for _ in range(300):
        path.write_bytes(mutant(whole, rng))
        try:
            planes = read(path)
        except InputRefused:
            continue
        counts: Counter[str] = Counter()
        for row in planes["ingest_counts"]:
            counts[row["plane"]] += row["records"]
        for plane in ("activities", "engine_events"):
            assert counts[plane] == len(planes.get(plane, []))


def test_numbers_that_json_has_not_are_null_with_an_issue(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({**ACTIVITY, "metadata": {"loss": float("nan"), "n": 1}}) + "\n")
    planes = read(path)
    (row,) = planes["activities"]
    assert json.loads(row["attributes"])["metadata"] == {"loss": None, "n": 1}
    assert [(issue["code"], issue["line"]) for issue in planes["ingest_issues"]] == [("not_finite", 1)]
    assert planes["runs"][0]["outcome"] == "complete"
    assert [(row["fate"], row["reason"]) for row in planes["ingest_counts"]] == [("repaired", "not_finite")]


def folder(tmp_path: Path, **values: Any) -> Path:
    artifact = {"title": "t", "kind": "inference_jsonl", "storage": "reference", "metadata": {}, "path": "run.jsonl"}
    session = {"session_id": "ses-demo", "metadata": {}}
    fixed = {"format": "stormlog.run_envelope", "schema_version": 1, "run_id": "run-demo", "metadata": {}}
    document = {**fixed, "sessions": [session], "attachments": [artifact], **values}
    (tmp_path / "stormlog_run.json").write_text(json.dumps(document))
    (tmp_path / "run.jsonl").write_bytes((DATA / "run.jsonl").read_bytes())
    return tmp_path


def test_a_folder_with_an_envelope_is_one_run_with_its_rows(tmp_path: Path) -> None:
    path = folder(tmp_path)
    assert detect_format(path).name == "stormlog"
    planes = read(path)
    types = Counter(row["event_type"] for row in planes["engine_events"])
    assert (types["envelope.run"], types["envelope.session"], types["envelope.attachment"]) == (1, 1, 1)
    assert (len(planes["activities"]), "ingest_issues" in planes) == (18, False)
    assert {row["file"] for row in planes["ingest_counts"]} == {path.name, "run.jsonl"}


def test_an_envelope_of_another_run_is_told(tmp_path: Path) -> None:
    planes = read(folder(tmp_path, run_id="other"))
    assert [row["code"] for row in planes["ingest_issues"]] == ["several_runs"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"more": 1}, "bad_envelope"),
        ({"format": "x"}, "bad_envelope"),
        ({"schema_version": 2}, "bad_envelope"),
        ({"run_id": ""}, "bad_envelope"),
        ({"attachments": []}, "no_artifact"),
        ({"sessions": [{}]}, "bad_envelope"),
    ],
)
def test_an_envelope_that_is_none_is_refused(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    with pytest.raises(InputRefused) as caught:
        read(folder(tmp_path, **change))
    assert caught.value.code == code


def test_an_artifact_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out.jsonl").write_bytes((DATA / "run.jsonl").read_bytes())
    row = {"title": "t", "kind": "inference_jsonl", "storage": "reference", "metadata": {}, "path": "../out.jsonl"}
    with pytest.raises(InputRefused, match="lists no inference artifact"):
        read(folder(tmp_path / "in", attachments=[row]))
