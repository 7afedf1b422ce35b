"""What lies in a store and does not belong there, and what a store must not do: the commands go on, or say why not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_support import published, store_with, write_trace

from planewise.pipeline.cli import run
from planewise.pipeline.discard import discard
from planewise.pipeline.publish import publish
from planewise.pipeline.run_folder import KEY_GLOB, is_run_key, run_key
from planewise.pipeline.store import Store
from planewise.pipeline.untrusted import lock_down, members_where, once_more, sql_fault
from planewise.recorder.errors import InputRefused, UsageError


def campaign(folder: Path, **comparison: object) -> Path:
    document = {
        "schema": "planewise/campaign/1",
        "campaign_id": "c",
        "entrypoint": "train_step",
        "planned": [{"capture_step": 3, "run_id": "r1"}, {"capture_step": 4, "run_id": "r2"}],
        "comparisons": [comparison] if comparison else [],
    }
    path = folder / "campaign.json"
    path.write_text(json.dumps(document))
    return path


def test_strays_among_the_bundles_are_named_and_stop_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_with(tmp_path, "r1")
    publish(store)
    strays = [store.path / "bundles" / name for name in ("a-note.txt", "notes", "r1-copy")]
    strays[0].write_text("to do")
    (strays[1] / "planes").mkdir(parents=True)
    (strays[1] / "planes" / "runs.parquet").write_bytes(b"no parquet at all")
    shutil.copytree(store.bundles()[0].path, strays[2])
    source = write_trace(tmp_path / "more.jsonl", "r2")
    assert run(["nightly", "--store", str(store.path), "--campaign", str(campaign(tmp_path)), str(source)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"warning: {path} is no run of this store; nothing reads it" for path in strays]
    assert "published: 1 new, 1 already published" in lines
    assert run(["sql", "SELECT run_id FROM runs ORDER BY 1", "--store", str(store.path), "--format", "csv"]) == 0
    assert capsys.readouterr().out == "run_id\nr1\nr2\n"


@pytest.mark.parametrize("command", ["qualify", "publish"])
def test_stages_warn_of_strays(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    store = store_with(tmp_path, "r1")
    (store.path / "staging" / "notes").mkdir()
    assert run([command, "--store", str(store.path)]) == 0
    assert f"warning: {store.path}/staging/notes is no run of this store" in capsys.readouterr().err


def test_a_bundle_without_its_manifest_is_refused_and_stops_no_night(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = published(tmp_path)
    (bundle / "bundle.json").unlink()
    (bundle / "planes" / "runs.parquet").write_bytes(b"damaged")
    source = write_trace(tmp_path / "more.jsonl", "r2")
    store = str(tmp_path / "store")
    assert run(["nightly", "--store", store, "--campaign", str(campaign(tmp_path)), str(source)]) == 3
    out = capsys.readouterr().out
    assert "published: 1 new, 0 already published, 1 refused" in out
    assert f"bundle.json: cannot be read: No such file or directory [{bundle.name}]" in out
    assert "campaign c: 2 planned, 0 published, 2 failed, 0 missing" in out


@given(st.text())
def test_every_run_key_is_known_as_one_and_fits_the_pattern(run_id: str) -> None:
    key = run_key(run_id)
    assert is_run_key(key)
    assert fnmatchcase(key, KEY_GLOB)
    assert not is_run_key(key + ".bak")


def test_a_damaged_planned_bundle_is_verification_failed_and_not_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = published(tmp_path)
    (bundle / "planes" / "runs.parquet").write_bytes(b"damaged")
    store = str(tmp_path / "store")
    assert run(["campaign", "status", str(campaign(tmp_path)), "--store", store, "--format", "json"]) == 0
    states = [row["state"]["state"] for row in json.loads(capsys.readouterr().out)["captures"]]
    assert states == ["verification_failed", "missing"]


def test_a_store_inside_a_store_is_refused(tmp_path: Path) -> None:
    store = store_with(tmp_path)
    with pytest.raises(UsageError, match="inside another store"):
        Store.open(store.path / "staging" / "inner", create=True)


def test_planned_run_ids_demand_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["campaign", "status", str(campaign(tmp_path))]) == 2
    assert "name the store with --store" in capsys.readouterr().err


def test_a_predicate_cannot_read_a_file_outside_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_with(tmp_path, "r1")
    publish(store)
    secret = tmp_path / "secret.txt"
    secret.write_text("r1")
    where = f"run_id = (SELECT content FROM read_text('{secret}'))"
    arguments = ["compare", "--store", str(store.path), "--baseline-where", where, "--candidate-where", "true"]
    assert run(arguments) == 2
    assert "file system operations are disabled" in capsys.readouterr().err


def test_the_predicates_of_a_campaign_cannot_read_a_file_outside_its_bundles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_with(tmp_path, "r1")
    secret = tmp_path / "secret.txt"
    secret.write_text("r1")
    where = {"where": f"run_id = (SELECT content FROM read_text('{secret}'))"}
    manifest = campaign(tmp_path, name="n", baseline=where, candidate=where)
    source = write_trace(tmp_path / "more.jsonl", "r2")
    assert run(["nightly", "--store", str(store.path), "--campaign", str(manifest), str(source)]) == 2
    assert "file system operations are disabled" in capsys.readouterr().err


def test_a_locked_connection_reads_its_folders_and_writes_nothing(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a.csv").write_text("x\n1\n")
    with duckdb.connect() as con:
        lock_down(con, [inside])
        assert con.execute(f"SELECT x FROM '{inside}/a.csv'").fetchall() == [(1,)]
        with pytest.raises(duckdb.Error, match="locked"):
            con.execute("SET enable_external_access = true")


def test_damaged_data_is_no_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = published(tmp_path)
    (bundle / "planes" / "spans.parquet").write_bytes(b"no parquet at all")
    assert run(["sql", "SELECT count(*) FROM spans", "--store", str(tmp_path / "store")]) == 3
    assert "planewise verify" in capsys.readouterr().err
    assert isinstance(sql_fault(duckdb.IOException("x")), InputRefused)
    assert isinstance(sql_fault(duckdb.ParserException("x")), UsageError)


def reader(times_away: int) -> Callable[[], int]:
    """A reader of a file that was listed and is away when it is opened, so many times."""
    faults = [duckdb.IOException('Cannot open file "runs.parquet": No such file or directory')] * times_away

    def read() -> int:
        if faults:
            raise sql_fault(faults.pop())
        return 1

    return read


def test_a_file_that_moves_once_is_read_again_and_one_that_stays_away_is_refused() -> None:
    assert once_more(reader(times_away=1)) == 1
    with pytest.raises(InputRefused, match="is there next time"):
        once_more(reader(times_away=2))


def test_no_output_begins_before_the_first_row_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_with(tmp_path, "r1")
    assert run(["sql", "SELECT error('no') FROM runs", "--store", str(store.path), "--format", "json"]) == 2
    assert capsys.readouterr().out == ""


def test_failed_runs_are_told_apart_from_the_members_of_a_cohort(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    with store.connect() as con:
        assert members_where(con, "true").complete == ("r1",)
        assert members_where(con, "true").left_out == ()


def test_discard_takes_a_staged_run_and_never_a_published_one(tmp_path: Path) -> None:
    store = store_with(tmp_path, "kept", "gone")
    [first] = discard(store, ["gone"])
    publish(store)
    results = discard(store, ["kept", "gone"])
    assert first.status == "discarded"
    assert [(result.status, result.message) for result in results] == [
        ("refused", "it is published, and a bundle is never taken back"),
        ("refused", "no such run is staged"),
    ]
    assert store.staged() == []
    assert list(store.bundle_paths()) == ["kept"]


def test_discard_says_what_it_did_and_exits_3_for_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_with(tmp_path, "r1")
    assert run(["discard", "r1", "nobody", "--store", str(store.path), "--format", "csv"]) == 3
    assert capsys.readouterr().out == "run_id,status,message\nr1,discarded,\nnobody,refused,no such run is staged\n"


@pytest.mark.parametrize("command", [["qualify"], ["ingest", "x"], ["campaign", "status", "c.json"]])
def test_an_empty_store_path_is_wrong_use(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--store", ""]) == 2
    assert "name the folder of the store" in capsys.readouterr().err


def test_a_store_that_cannot_be_written_still_answers_and_has_no_catalogue_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_with(tmp_path, "r1")
    if os.geteuid() == 0:  # To whom no mode forbids anything.
        monkeypatch.setattr(os, "access", lambda _path, mode, **_: mode != os.W_OK)
    store.path.chmod(0o555)
    try:
        assert run(["sql", "SELECT run_id FROM runs", "--store", str(store.path), "--format", "csv"]) == 0
        assert run(["catalog", "--store", str(store.path)]) == 3
    finally:
        store.path.chmod(0o755)
    out, err = capsys.readouterr()
    assert out == "run_id\nr1\n"
    assert "the store cannot be written" in err
    assert not (store.path / "planewise.duckdb").exists()


def test_a_new_store_that_no_source_came_into_is_not_left_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ingest", str(tmp_path / "nothing"), "--store", str(tmp_path / "new")]) == 3
    assert "no store was made" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_was_there_or_holds_a_run_is_left(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "old", create=True)
    assert run(["ingest", str(tmp_path / "nothing"), "--store", str(store.path)]) == 3
    assert (store.path / "store.json").exists()
    assert not store_with(tmp_path, "r1").withdraw()


@pytest.mark.parametrize("command", [["overview"], ["query", "--kind", "health"]])
def test_a_store_given_for_a_bundle_is_named_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    store = Store.open(tmp_path / "store", create=True)
    assert run([*command, str(store.path)]) == 3
    assert f"name a bundle in {store.path}/bundles" in capsys.readouterr().err


def test_a_night_forgets_the_comparison_that_its_manifest_names_no_more(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1", "r2")
    cohorts = {"baseline": {"where": "run_id = 'r1'"}, "candidate": {"where": "run_id = 'r2'"}}
    for name in ("first", "second"):
        manifest = campaign(tmp_path, name=name, **cohorts)
        assert run(["nightly", "--store", str(store.path), "--campaign", str(manifest), str(tmp_path / "sources")]) == 0
    [document] = store.path.glob("campaigns/*/comparison-*.json")
    assert json.loads(document.read_text())["name"] == "second"
    with Store.open(store.path).connect() as con:
        assert con.execute("SELECT comparison_id FROM comparisons").fetchall() == [("second",)]


def test_a_night_tells_why_a_run_was_refused_once_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_with(tmp_path, "r1")
    (store.staged()[0].path / "planes" / "spans.parquet").write_bytes(b"damaged")
    source = str(write_trace(tmp_path / "it's here" / "r2.jsonl", "r2").parent)
    assert run(["nightly", "--store", str(store.path), "--campaign", str(campaign(tmp_path)), source]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert "qualified: 1 valid, 0 failed, 0 invalid, 1 refused" in lines
    assert "published: 1 new, 0 already published, 1 refused" in lines
    [refused] = [line for line in lines if line.startswith("  refused")]
    assert refused.startswith("  refused no evidence: ")
    assert refused.endswith("[r1]")


def test_a_night_of_the_protocols_manifest_says_what_it_cannot_declare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = {"schema": "candle-graph/campaign/1", "campaign_id": "c", "entrypoint": "demo::train"}
    manifest = tmp_path / "campaign.json"
    manifest.write_text(json.dumps({**document, "planned": [{"capture_step": 3, "bundle": "x"}]}))
    source = write_trace(tmp_path / "r1.jsonl", "r1")
    assert run(["nightly", "--store", str(tmp_path / "s p"), "--campaign", str(manifest), str(source)]) == 0
    out = capsys.readouterr().out
    assert "comparisons: a manifest of schema candle-graph/campaign/1 can declare none" in out
    assert f"--store '{tmp_path}/s p'" in out


def test_qualify_exits_3_for_a_refused_run_and_says_when_it_judged_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_with(tmp_path, "r1", "r2")
    first = store.staged()[0]
    kept = (first.path / "planes" / "spans.parquet").read_bytes()
    (first.path / "planes" / "spans.parquet").write_bytes(b"damaged")
    assert run(["qualify", "--store", str(store.path)]) == 3
    (first.path / "planes" / "spans.parquet").write_bytes(kept)
    publish(store)
    capsys.readouterr()
    assert run(["qualify", "--store", str(store.path), "--require-valid"]) == 0
    assert "nothing is staged, so --require-valid judged nothing" in capsys.readouterr().err
