"""Nodes of an execution trace meet the events of the Kineto trace recorded beside it, by id and name."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kineto_support import x
from mutate import mutant

from planewise.ingest.execution_nodes import with_execution_trace
from planewise.ingest.kineto import KinetoReader
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.staging import ReadOptions
from planewise.pipeline.store import Store
from planewise.pipeline.stores import open_store
from planewise.recorder.errors import InputRefused, UsageError

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
FLAT = {"name": "aten::mm", "id": 5, "rf_id": 3, "parent": 4, "seq_id": 7, "tid": 1, "op_schema": "aten::mm(...)"}
SIDES = {"inputs": [[6, 7]], "input_shapes": [[2, 2]], "input_types": ["Tensor(float)"]}
LISTED = {
    "id": 9,
    "name": "aten::add",
    "ctrl_deps": 5,
    "inputs": {"values": [1], "shapes": [[]], "types": ["Int"]},
    "outputs": {"values": [], "shapes": [], "types": []},
    "attrs": [{"name": "rf_id", "value": 4}, {"name": "seq_id", "value": -1}, {"name": "tid", "value": 2}],
}


def kineto(folder: Path, key: str = "Record function id", ids: tuple[int, ...] = (3, 4)) -> Path:
    events = [
        x("cpu_op", name, 10 * place + 1, 5, **{key: id_})
        for place, (name, id_) in enumerate(zip(("aten::mm", "aten::add", "aten::mul"), ids, strict=False))
    ]
    path = folder / "k.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def trace(folder: Path, *nodes: Any, schema: str = "1.0.1") -> Path:
    path = folder / "et.json"
    path.write_text(json.dumps({"schema": schema, "pid": 1, "nodes": list(nodes)}))
    return path


def read(profile: Path, execution_trace: Path) -> dict[str, list[dict[str, Any]]]:
    planes: dict[str, list[dict[str, Any]]] = {}
    for part in with_execution_trace(KinetoReader().read(profile), profile, execution_trace):
        planes.setdefault(part.plane, []).extend(part.table.to_pylist())
    return planes


@pytest.mark.parametrize("key", ["Record function id", "External id"])
def test_nodes_of_both_layouts_join_by_id_and_name(tmp_path: Path, key: str) -> None:
    planes = read(kineto(tmp_path, key), trace(tmp_path, {**FLAT, **SIDES}, LISTED))
    first, second = planes["execution_nodes"]
    seq = {row["op_name"]: row["seq"] for row in planes["ops"]}
    assert (first["event_seq"], second["event_seq"]) == (seq["aten::mm"], seq["aten::add"])
    assert (first["node_id"], first["parent_node_id"], first["record_function_id"], first["thread"]) == (5, 4, 3, 1)
    assert (first["sequence_number"], first["op_schema"]) == (7, "aten::mm(...)")
    assert (second["parent_node_id"], second["sequence_number"], second["thread"]) == (5, None, 2)
    assert json.loads(first["inputs"]) == {"values": [[6, 7]], "shapes": [[2, 2]], "types": ["Tensor(float)"]}
    assert json.loads(second["inputs"]) == {"values": [1], "shapes": [[]], "types": ["Int"]}


def test_what_joins_nothing_or_several_stays_alone_and_is_counted(tmp_path: Path) -> None:
    other, unknown, none = {**FLAT, "name": "aten::mv"}, {**FLAT, "rf_id": 99}, {**FLAT, "rf_id": 0}
    planes = read(kineto(tmp_path), trace(tmp_path, FLAT, other, unknown, none))
    assert [row["event_seq"] is None for row in planes["execution_nodes"]] == [False, True, True, True]
    assert planes["execution_nodes"][3]["record_function_id"] is None
    (issue,) = [row for row in planes["ingest_issues"] if row["code"] == "execution_nodes_not_joined"]
    assert issue["message"].startswith("2 of 3 records")


def test_an_id_and_name_of_several_events_join_none_of_them(tmp_path: Path) -> None:
    profile = kineto(tmp_path)
    document = json.loads(profile.read_text())
    document["traceEvents"].append(x("cpu_op", "aten::mm", 90, 5, **{"Record function id": 3}))
    profile.write_text(json.dumps(document))
    planes = read(profile, trace(tmp_path, FLAT, LISTED))
    assert [row["event_seq"] for row in planes["execution_nodes"]] == [None, planes["ops"][1]["seq"]]


def test_the_ledger_goes_on_behind_that_of_the_profile(tmp_path: Path) -> None:
    planes = read(kineto(tmp_path), trace(tmp_path, FLAT, {"id": "?"}, LISTED))
    for plane in ("ingest_counts", "ingest_issues"):
        assert [row["seq"] for row in planes[plane]] == list(range(len(planes[plane])))
    fates = {(row["fate"], row["plane"]): row["records"] for row in planes["ingest_counts"] if row["file"] == "et.json"}
    assert fates == {("kept", "execution_nodes"): 2, ("dropped", None): 1}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}", "no_execution_trace"),
        ('{"schema": "1.0.1", "nodes": [{"rf_id": 1}', "execution_trace_damaged"),
        (json.dumps({"schema": "1.0.1", "nodes": [{**FLAT, "rf_id": 77}]}), "execution_trace_of_another_run"),
    ],
)
def test_what_is_no_partner_is_refused(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "et.json"
    path.write_text(text)
    with pytest.raises(InputRefused) as caught:
        read(kineto(tmp_path), path)
    assert (caught.value.code, caught.value.source) == (code, str(path))
    assert caught.value.remedy


def test_a_store_keeps_the_trace_that_was_joined(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    options = ReadOptions(execution_trace=trace(tmp_path, FLAT))
    (result,) = ingest_sources(store, [kineto(tmp_path)], options=options)
    assert (result.status, result.rows and result.rows["execution_nodes"]) == ("ingested", 1)
    opened = open_store(store.path)
    assert opened.sql("SELECT path FROM attachments").fetchall() == [("attachments/execution_trace.json",)]
    assert opened.sql("SELECT count(*) FROM ingest_audit WHERE NOT balanced").fetchall() == [(0,)]


def test_an_execution_trace_needs_one_kineto_trace(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    options = ReadOptions(execution_trace=trace(tmp_path, FLAT))
    with pytest.raises(UsageError, match="2 sources"):
        ingest_sources(store, [kineto(tmp_path), kineto(tmp_path)], options=options)
    other = tmp_path / "o.csv"
    other.write_text("Time (%),Total Time (ns),Instances,Avg (ns),Min (ns),Max (ns),Name\n100.0,1,1,1,1,1,k\n")
    (result,) = ingest_sources(store, [other], options=options)
    assert (result.status, result.code) == ("refused", "no_kineto_trace")


def test_python_frames_are_spans_only_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "k.json"
    frames = [x("python_function", "a.py(1): f", 1, 5), x("cpu_op", "aten::mm", 2, 1)]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": frames}))
    found = []
    for number, asked in enumerate((False, True)):
        store = Store.open(tmp_path / f"s{number}", create=True)
        ingest_sources(store, [path], options=ReadOptions(python_functions=asked))
        found.append(open_store(store.path).sql("SELECT name FROM spans").fetchall())
    assert found == [[], [("a.py(1): f",)]]


def test_mutants_are_joined_or_refused(tmp_path: Path) -> None:
    import random

    rng, profile = random.Random(4), kineto(tmp_path)
    whole = json.dumps({"schema": "1.0.2", "nodes": [{**FLAT, **SIDES}, LISTED] * 3}).encode()
    path = tmp_path / "et.json"
    for _ in range(200):
        path.write_bytes(mutant(whole, rng))
        try:
            planes = read(profile, path)
        except InputRefused:
            continue
        counts = Counter(row["plane"] for row in planes["ingest_counts"] for _ in range(row["records"]))
        assert counts["execution_nodes"] == len(planes["execution_nodes"])


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the repository")
def test_a_real_pair_joins_by_the_ids_that_both_carry() -> None:
    profile = CORPUS / "kineto" / "hta_simple_add_for_et.json.gz"
    partner = CORPUS / "exec_trace" / "hta_simple_add_et.json.gz"
    planes = read(profile, partner)
    events = json.loads(gzip.decompress(profile.read_bytes()))["traceEvents"]
    names = {(e["args"]["External id"], e["name"]) for e in events if e.get("cat") in ("cpu_op", "user_annotation")}
    nodes = json.loads(gzip.decompress(partner.read_bytes()))["nodes"]
    wanted = [node["name"] for node in nodes if (node["rf_id"], node["name"]) in names]
    joined = [row["name"] for row in planes["execution_nodes"] if row["event_seq"] is not None]
    assert joined == wanted
    assert len(joined) > 20
    known = {row["seq"]: row["op_name"] for row in planes["ops"]} | {s["seq"]: s["name"] for s in planes["spans"]}
    assert all(known[row["event_seq"]] == row["name"] for row in planes["execution_nodes"] if row["event_seq"])
