"""Facts a user supplies about a foreign trace: filled in, marked as supplied, and never against the trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from store_support import EXAMPLE

from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.staging import ReadOptions
from planewise.pipeline.store import Store
from planewise.pipeline.supplied import SuppliedFacts, load_supplied
from planewise.recorder.errors import InputRefused

IDENTITY = {
    **{name: name for name in ("workload_id", "model_id", "config_id", "data_id", "seed_policy", "precision")},
    "implementation_id": "git:1",
    "device_state": "idle",
    "physical_batch": 4,
    "accumulation_steps": 1,
}


def chrome(folder: Path, *names: str) -> Path:
    events = [
        {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1, "ts": 10 + 10 * place, "dur": 5}
        for place, name in enumerate(names)
    ]
    path = folder / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events, "distributedInfo": {"rank": 3}}))
    return path


def facts(folder: Path, **values: Any) -> SuppliedFacts:
    path = folder / "facts.json"
    path.write_text(json.dumps(values))
    return load_supplied(path)


def test_supplied_facts_fill_what_the_trace_left_open_and_are_marked(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    given = facts(tmp_path, phase="train", measurement_scope="production_equivalent", comparison_identity=IDENTITY)
    [result] = ingest_sources(store, [chrome(tmp_path, "step")], options=ReadOptions(facts=given))
    assert result.status == "ingested", result.message
    with store.connect() as con:
        columns = "phase, capture_contract.measurement_scope, comparison_identity.implementation_id, supplied"
        row = con.execute(f"SELECT {columns} FROM runs").fetchall()
    assert row == [("train", "production_equivalent", "git:1", ["comparison_identity", "measurement_scope", "phase"])]


def test_the_one_span_of_a_name_becomes_the_measured_region(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    ingest_sources(
        store,
        [chrome(tmp_path, "a", "ProfilerStep#3")],
        options=ReadOptions(facts=facts(tmp_path, measured_span="ProfilerStep#3")),
    )
    with store.connect() as con:
        assert con.execute("SELECT name FROM spans WHERE measured").fetchall() == [("ProfilerStep#3",)]
        assert con.execute("SELECT outer_wall_time_ns FROM outer_wall_time").fetchall() == [(5000,)]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"measured_span": "none"}, "measured_span_not_found"),
        ({"measured_span": "a"}, "measured_span_ambiguous"),
        ({"rank": 4}, "supplied_conflict"),
    ],
)
def test_facts_against_the_trace_refuse_it_and_leave_nothing(tmp_path: Path, given: dict[str, Any], code: str) -> None:
    store = Store.open(tmp_path / "store", create=True)
    [result] = ingest_sources(store, [chrome(tmp_path, "a", "a")], options=ReadOptions(facts=facts(tmp_path, **given)))
    assert (result.status, result.code) == ("refused", code)
    assert store.staged() == []


def test_a_trace_that_speaks_for_itself_takes_no_supplied_fact(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    ingest_sources(store, [EXAMPLE], options=ReadOptions(facts=facts(tmp_path, entrypoint="other")))
    with store.connect() as con:
        assert con.execute(
            "SELECT count(*) FROM runs WHERE entrypoint = 'other' OR supplied IS NOT NULL"
        ).fetchall() == [(0,)]


def test_facts_for_a_run_that_is_there_already_are_said_not_to_apply(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store", create=True)
    source = chrome(tmp_path, "a")
    ingest_sources(store, [source])
    [result] = ingest_sources(store, [source], options=ReadOptions(facts=facts(tmp_path, phase="infer")))
    assert result.status == "unchanged"
    assert "was not applied" in str(result.message)


@pytest.mark.parametrize("text", ["[]", "{", '{"phase": "test"}', '{"nosuch": 1}', '{"rank": -1}'])
def test_a_file_of_no_facts_is_refused_with_what_may_stand_in_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "facts.json"
    path.write_text(text)
    with pytest.raises(InputRefused, match="is no file of supplied facts"):
        load_supplied(path)


def test_processes_side_by_side_give_the_same_results_and_files(tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / "in" / str(number)
        folder.mkdir(parents=True)
        chrome(folder, f"a{number}")
    (tmp_path / "in" / "bad.json").write_text("nothing")
    trees = []
    for jobs in (1, 3):
        store = Store.open(tmp_path / f"store{jobs}", create=True)
        results = ingest_sources(store, [tmp_path / "in"], jobs=jobs)
        assert sorted(result.status for result in results) == ["ingested"] * 4 + ["refused"]
        trees.append(
            {
                str(path.relative_to(store.path)): path.read_bytes()
                for path in sorted((store.path / "staging").rglob("*.parquet"))
            }
        )
    assert trees[0] == trees[1]
