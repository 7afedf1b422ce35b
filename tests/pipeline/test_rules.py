"""Rules of a store are data that its user replaces; views follow, and what is no rule changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from planewise.pipeline.cli import cli
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.rules import load_rules, reset_rules
from planewise.pipeline.store import Store
from planewise.pipeline.stores import open_store
from planewise.recorder.errors import InputRefused

CLASSES = "SELECT DISTINCT class FROM device_work"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    event = {"ph": "X", "cat": "kernel", "name": "my_kernel", "pid": 0, "tid": 7, "ts": 1, "dur": 5}
    event["args"] = {"device": 0, "stream": 7}
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    store = Store.open(tmp_path / "store", create=True)
    ingest_sources(store, [tmp_path / "t.json"])
    return store


def asked(store: Store, query: str = CLASSES) -> list[tuple[object, ...]]:
    with open_store(store.path) as opened:
        return opened.sql(query).fetchall()


def csv_of(folder: Path, text: str) -> Path:
    path = folder / "rules.csv"
    path.write_text(text)
    return path


def test_loaded_rules_take_the_place_of_the_built_in_ones_until_they_are_reset(store: Store, tmp_path: Path) -> None:
    assert asked(store) == [("compute",)]
    source = csv_of(tmp_path, "class,priority,category,name\nmine,1,,my%\nother,2,kernel,\n")
    assert load_rules(store, "device_classes", source) == 2
    assert asked(store) == [("mine",)]
    assert asked(store, "SELECT count(*) FROM device_class_rules") == [(2,)]
    reset_rules(store, "device_classes")
    assert asked(store) == [("compute",)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("priority,category,name\n1,,x\n", "found the columns"),
        ("priority,category,name,class\n", "no rule"),
        ("priority,category,name,class\none,,x,y\n", "invalid value 'one'"),
        ("priority,category,name,class\n1,,x,y\n2,,x,\n", "line 3: class is empty"),
        ("priority,category,name,class\n1,,x\n", "Expected 4 columns, got 3"),
        ("", "Empty CSV"),
    ],
)
def test_what_is_no_rule_is_refused_and_changes_nothing(store: Store, tmp_path: Path, text: str, found: str) -> None:
    with pytest.raises(InputRefused, match=found) as caught:
        load_rules(store, "device_classes", csv_of(tmp_path, text))
    assert "priority,category,name,class" in str(caught.value.remedy)
    assert asked(store) == [("compute",)]


def test_what_the_command_prints_can_be_loaded_again(store: Store, tmp_path: Path) -> None:
    words = ["rules", "device_classes", "--store", str(store.path)]
    printed = CliRunner().invoke(cli, [*words, "--format", "csv"])
    source = csv_of(tmp_path, printed.stdout)
    again = CliRunner().invoke(cli, [*words, "--load", str(source), "--format", "csv"])
    assert (printed.exit_code, again.exit_code) == (0, 0)
    assert again.stdout == printed.stdout
    assert asked(store) == [("compute",)]


def test_steps_are_marked_by_loaded_rules(store: Store, tmp_path: Path) -> None:
    assert load_rules(store, "step_markers", csv_of(tmp_path, "name,category\nmy step %,\n")) == 1
    assert asked(store, "FROM step_marker_rules") == [("my step %", None)]


def test_loading_and_resetting_exclude_each_other(store: Store, tmp_path: Path) -> None:
    words = ["rules", "step_markers", "--store", str(store.path), "--reset", "--load", str(tmp_path / "x.csv")]
    assert CliRunner().invoke(cli, words).exit_code != 0
