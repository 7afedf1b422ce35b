"""The store: what becomes one, what is swept, who waits for whom."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from store_support import store_with

from planewise.pipeline.store import Store, run_key
from planewise.pipeline.stores import open_store
from planewise.recorder.errors import IncompatibleInput, InputRefused, UsageError

HOSTILE = [
    "../..",
    "..",
    ".",
    "",
    "/etc/passwd",
    "a\0b",
    "a\nb",
    "x" * 10_000,
    "прогон/七",
    "-rf",
    "a*b?[c]",
    "CON",
    "run",
]


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python child that prints one line when it is ready and then waits to be killed."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_when_ready(process: subprocess.Popen[str]) -> None:
    """Wait for the child's line, then SIGKILL it."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("run_id", HOSTILE)
def test_a_run_key_is_always_one_plain_folder_name(run_id: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,39}-[0-9a-f]{16}", run_key(run_id))


def test_run_keys_of_different_ids_differ_even_when_their_readable_part_is_equal() -> None:
    assert len({run_key(run_id) for run_id in [*HOSTILE, "a/b", "a_b", "a//b"]}) == len(HOSTILE) + 3


def test_a_run_key_keeps_the_readable_start_of_the_id() -> None:
    assert run_key("train/step 3").startswith("train_step_3-")


def test_create_makes_an_empty_folder_a_store_and_opening_it_again_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    Store.open(tmp_path / "s", create=True)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "s").rglob("*")}
    Store.open(tmp_path / "s")
    Store.open(tmp_path / "s", create=True)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "s").rglob("*")} == before


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputRefused, match=r"holds 'thesis.txt' and no store.json; name an empty"):
        Store.open(tmp_path, create=True)
    assert os.listdir(tmp_path) == ["thesis.txt"]


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.write_text("file"), lambda p: p.mkdir()])
def test_a_path_without_a_store_is_refused_when_it_may_not_be_made(tmp_path: Path, make) -> None:
    make(tmp_path / "s")
    with pytest.raises(InputRefused, match="no store here"):
        Store.open(tmp_path / "s")


def test_another_store_version_is_refused_with_both_versions_and_the_remedy(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    (store.path / "store.json").write_text('{"schema": "planewise/store/7", "plane_version": 1}')
    with pytest.raises(IncompatibleInput, match=r"planewise/store/7 .* knows planewise/store/1 .*; use the planewise"):
        Store.open(store.path)


def test_a_damaged_format_file_is_refused(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    (store.path / "store.json").write_text("{")
    with pytest.raises(InputRefused, match="cannot be read as a store's format"):
        Store.open(store.path)


@pytest.mark.parametrize("name", ["a*", "a?", "a[1]", "a\\b"])
def test_a_path_with_wildcards_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="may not hold"):
        Store.open(tmp_path / name, create=True)
    assert not (tmp_path / name).exists()


def test_a_store_inside_a_published_bundle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b" / "planes").mkdir(parents=True)
    (tmp_path / "b" / "bundle.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "b" / "planes")
    for path in (tmp_path / "b" / "planes" / "s", tmp_path / "link" / "s"):
        with pytest.raises(UsageError, match="inside a published bundle"):
            Store.open(path, create=True)
    assert os.listdir(tmp_path / "b" / "planes") == []


def test_find_meets_a_staged_run_by_its_id_and_no_other(tmp_path: Path) -> None:
    store = store_with(tmp_path, "../..", "a\0b")
    found = store.find("../..")
    assert found is not None
    assert (found.run_id, found.published, found.path.parent) == ("../..", False, store.path / "staging")
    assert store.find("..") is None
    assert {run.run_id for run in store.staged()} == {"../..", "a\0b"}
    assert store.bundles() == []


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    code = (
        "import sys, time; from planewise.pipeline.store import Store\n"
        "with Store.open(sys.argv[1]).lock(): print('ready', flush=True); time.sleep(60)"
    )
    kill_when_ready(child(code, store.path))
    with store.lock():
        pass


def test_opening_sweeps_what_a_killed_process_left_and_spares_the_living(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    code = (
        "import sys, time; from planewise.pipeline.store import Store\n"
        "with Store.open(sys.argv[1]).scratch() as folder:\n"
        "    (folder / 'half').write_text('x'); print('ready', flush=True); time.sleep(60)"
    )
    kill_when_ready(child(code, store.path))
    assert len(os.listdir(store.path / "tmp")) == 1
    with store.scratch() as mine:
        Store.open(store.path)
        assert os.listdir(store.path / "tmp") == [mine.name]
    assert os.listdir(store.path / "tmp") == []


def test_open_store_answers_queries_and_closes(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1", "r2")
    with open_store(store.path) as opened:
        assert opened.sql("SELECT run_id FROM runs ORDER BY run_id").fetchall() == [("r1",), ("r2",)]
        assert opened.sql("SELECT count(*) AS n FROM spans").pl()["n"].to_list() == [10]
    assert os.listdir(store.path / "tmp") == []
