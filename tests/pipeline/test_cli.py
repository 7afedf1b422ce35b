"""The command line: what each command prints, where it prints it, and the exit code it ends with."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from planewise.pipeline import cli as cli_module
from planewise.pipeline.cli import cli, run

DATA = Path(__file__).parent.parent / "data"
CAPTURES = Path(__file__).parent.parent.parent / "examples" / "captures"


class Outcome(NamedTuple):
    """One finished command."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def planewise(capfd: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: object) -> Outcome:
        code = run([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the worked example, published and catalogued; tests that change it take a copy."""
    path = tmp_path_factory.mktemp("cli") / "store"
    assert run(["ingest", str(DATA / "every-kind.jsonl"), "--store", str(path)]) == 0
    assert run(["publish", "--store", str(path)]) == 0
    assert run(["catalog", "--store", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def bundle(store: Path) -> Path:
    """The worked example, published; only to be read."""
    [found] = (store / "bundles").iterdir()
    return found


def leaves(group: click.Group, prefix: str = "") -> list[tuple[str, click.Command]]:
    found = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += leaves(command, f"{prefix}{name} ")
        else:
            found.append((prefix + name, command))
    return found


@pytest.mark.parametrize(("name", "command"), leaves(cli))
def test_every_command_has_help_with_an_example_and_every_option_says_what_it_does(
    name: str, command: click.Command
) -> None:
    assert command.help, name
    assert "Example" in command.help, name
    silent = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert not silent, name


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select busy_ns from device_clock_busy", "busy_ns\n200\n"),
        (
            "select peak_live_bytes, peak_timestamp_ns from live_bytes_peak where device is null",
            "peak_live_bytes,peak_timestamp_ns\n768,310\n",
        ),
        ("select outer_wall_time_ns from outer_wall_time", "outer_wall_time_ns\n800\n"),
    ],
)
def test_sql_answers_the_worked_example(store: Path, planewise: Command, query: str, expected: str) -> None:
    assert planewise("sql", query, "--store", store, "--format", "csv") == (0, expected, "")


def test_sql_fault_is_wrong_use_and_names_the_column(store: Path, planewise: Command) -> None:
    outcome = planewise("sql", "select nothing from runs", "--store", store)
    assert outcome.code == 2
    assert "nothing" in outcome.err
    assert "Traceback" not in outcome.err


def test_sql_value_fault_while_fetching_is_wrong_use(store: Path, planewise: Command) -> None:
    assert planewise("sql", "select run_id::int from runs", "--store", store).code == 2


@pytest.mark.parametrize("query", ["from read_text('/etc/hostname')", "drop view runs", "select 1; select 2"])
def test_sql_reads_the_store_and_nothing_else(store: Path, planewise: Command, query: str) -> None:
    outcome = planewise("sql", query, "--store", store)
    assert outcome.code == 2
    assert outcome.out == ""


def test_stages_run_to_a_verified_bundle_and_a_rerun_says_nothing_is_new(bundle: Path, planewise: Command) -> None:
    store = bundle.parent.parent
    assert planewise("verify", bundle, "--semantic").code == 0
    again = planewise("publish", "--store", store, "--format", "json")
    assert [row["status"] for row in json.loads(again.out)] == ["already_published"]
    assert "published 0" in again.err
    same = planewise("ingest", DATA / "every-kind.jsonl", "--store", store, "--output-format", "json")
    assert [row["status"] for row in json.loads(same.out)] == ["unchanged"]


def test_refused_source_is_listed_the_others_go_on_and_the_code_is_3(tmp_path: Path, planewise: Command) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"kind":"meta"}\n')
    store = tmp_path / "store"
    outcome = planewise("ingest", bad, DATA / "every-kind.jsonl", "--store", store, "--output-format", "csv")
    rows = list(csv.DictReader(io.StringIO(outcome.out)))
    assert outcome.code == 3
    assert [row["status"] for row in rows] == ["refused", "ingested"]
    assert "line 1" in rows[0]["message"]
    assert len(list((store / "staging").iterdir())) == 1
    assert list((store / "tmp").iterdir()) == []


def test_require_valid_fails_with_1_on_a_failed_capture(tmp_path: Path, planewise: Command) -> None:
    store = tmp_path / "store"
    planewise("ingest", CAPTURES / "failed-01", "--store", store)
    assert planewise("qualify", "--store", store).code == 0
    outcome = planewise("qualify", "--store", store, "--require-valid")
    assert outcome.code == 1
    assert "failed-01" in outcome.err


def test_verify_names_the_changed_file_and_exits_3(bundle: Path, tmp_path: Path, planewise: Command) -> None:
    changed = shutil.copytree(bundle, tmp_path / "changed")
    report = changed / "report.md"
    report.chmod(0o644)
    report.write_text(report.read_text() + "x")
    outcome = planewise("verify", changed)
    assert outcome.code == 3
    assert "report.md" in outcome.out


def test_query_pages_and_names_the_next_offset(bundle: Path, planewise: Command) -> None:
    outcome = planewise("query", bundle, "--kind", "spans", "--limit", 2, "--format", "json")
    document = json.loads(outcome.out)
    assert [len(document["result"]["rows"]), document["result"]["next_offset"], document["result"]["total"]] == [
        2,
        2,
        7,
    ]
    assert "--offset 2" in outcome.err


def test_query_reads_a_raw_trace_as_it_reads_its_bundle(bundle: Path, planewise: Command) -> None:
    answers = [
        planewise("query", source, "--kind", "activations", "--format", "csv").out
        for source in (bundle, DATA / "every-kind.jsonl")
    ]
    assert answers[0] == answers[1]
    assert [row["id"] for row in csv.DictReader(io.StringIO(answers[0]))] == ["s4", "s3/op/0"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--kind", "memory", "--label", "x"), "has no labels"),
        (("--kind", "spans", "--label", "x", "--label-prefix", "y"), "exclude each other"),
        (("--kind", "spans", "--limit", "1001"), "outside 1 to 1000"),
        (("--kind", "nonsense"), "nonsense"),
    ],
)
def test_query_wrong_use_is_exit_2(planewise: Command, arguments: tuple[str, ...], text: str) -> None:
    outcome = planewise("query", DATA / "every-kind.jsonl", *arguments)
    assert outcome.code == 2
    assert text in outcome.err


def test_query_needs_a_valid_capture_for_a_graph_kind(planewise: Command) -> None:
    outcome = planewise("query", CAPTURES / "failed-01", "--kind", "spans")
    assert outcome.code == 3
    assert "failed" in outcome.err
    assert planewise("query", CAPTURES / "failed-01", "--kind", "health").code == 0


def test_overview_is_bounded_and_gives_its_headlines(bundle: Path, planewise: Command) -> None:
    document = json.loads(planewise("overview", bundle, "--format", "json").out)
    assert document["timing"]["outer_wall_time_ns"] == 800
    assert document["memory"]["logical_totals"]["peak_live_bytes"] == 768
    assert [row["id"] for row in document["activations"]["headlines"]["dense_output"]] == ["s3/op/0", "s4"]
    assert planewise("overview", bundle).code == 0


def test_output_inside_a_bundle_is_refused_before_anything_is_written(bundle: Path, planewise: Command) -> None:
    outcome = planewise("overview", bundle, "--output", bundle / "overview.json")
    assert outcome.code != 0
    assert not (bundle / "overview.json").exists()


def test_loose_evidence_without_a_manifest_is_refused(tmp_path: Path, planewise: Command) -> None:
    shutil.copy(DATA / "every-kind.jsonl", tmp_path / "trace.jsonl")
    (tmp_path / "evidence.json").write_text("{}")
    outcome = planewise("overview", tmp_path / "trace.jsonl")
    assert outcome.code == 3
    assert "evidence.json" in outcome.err


def test_missing_store_and_missing_input_are_refused_with_their_names(tmp_path: Path, planewise: Command) -> None:
    for arguments in (("sql", "from runs", "--store", tmp_path / "none"), ("overview", tmp_path / "none")):
        outcome = planewise(*arguments)
        assert outcome.code in (2, 3)
        assert "none" in outcome.err


def test_compare_of_one_run_each_is_ineligible_and_require_eligible_says_why(bundle: Path, planewise: Command) -> None:
    outcome = planewise("compare", "--baseline", bundle, "--candidate", bundle, "--require-eligible")
    assert outcome.code == 1
    assert "insufficient_runs" in outcome.err


def test_catalog_rebuilds_the_views_after_a_move(store: Path, tmp_path: Path, planewise: Command) -> None:
    moved = shutil.copytree(store, tmp_path / "moved")
    assert planewise("catalog", "--store", moved).code == 0
    assert planewise("sql", "select count(*) as n from runs", "--store", moved, "--format", "csv").out == "n\n1\n"


def test_schema_lists_planes_and_views_and_describes_one(planewise: Command) -> None:
    names = {row["name"] for row in json.loads(planewise("schema", "--format", "json").out)}
    assert {"spans", "device_clock_busy", "health_issues"} <= names
    columns = json.loads(planewise("schema", "device_clock_busy", "--format", "json").out)
    assert [row["column"] for row in columns] == ["run_id", "device", "clock_id", "interval_count", "busy_ns"]
    assert all(row["about"] for row in columns)
    assert planewise("schema", "nothing").code == 2


def test_protocol_names_every_command(planewise: Command) -> None:
    document = json.loads(planewise("protocol").out)
    assert {row["name"] for row in document["commands"]} == set(cli.commands)


def test_a_fault_of_ours_is_exit_4_without_a_traceback(monkeypatch: pytest.MonkeyPatch, planewise: Command) -> None:
    def broken(_: dict[str, str]) -> dict[str, str]:
        raise RuntimeError("boom")

    monkeypatch.setattr("planewise.pipeline.commands.protocol.protocol_document", broken)
    outcome = planewise("protocol")
    assert outcome.code == 4
    assert "boom" in outcome.err
    assert "Traceback" not in outcome.err


def test_interrupt_is_exit_130(monkeypatch: pytest.MonkeyPatch, planewise: Command) -> None:
    def interrupted(_: dict[str, str]) -> dict[str, str]:
        raise KeyboardInterrupt

    monkeypatch.setattr("planewise.pipeline.commands.protocol.protocol_document", interrupted)
    assert planewise("protocol").code == 130


def test_main_exits_with_the_code_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_module, "run", lambda _: 3)
    with pytest.raises(SystemExit) as caught:
        cli_module.main([])
    assert caught.value.code == 3


def test_table_of_a_wide_kind_shows_fewer_columns_and_says_so(bundle: Path, planewise: Command) -> None:
    outcome = planewise("query", bundle, "--kind", "activations")
    assert "of 20 columns shown" in outcome.err
    assert "classification_sources" not in outcome.out
