"""What a stranger's query may cost: time, memory and rows, in real queries that would take far more."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from store_support import store_with

from planewise.pipeline.cli import run
from planewise.pipeline.limits import Limits

ENDLESS = [
    "SELECT sum(a.range * b.range) FROM range(10000000) AS a, range(10000000) AS b",
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "SELECT sum(hash(d.range + a.seq)) FROM spans AS a, spans AS b, range(1000000000000) AS d",
]
LARGE = [
    "SELECT list(range) FROM range(1000000000)",
    "SELECT count(*) FROM (SELECT DISTINCT range, md5(range::VARCHAR) FROM range(200000000))",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(store_with(tmp_path_factory.mktemp("limits"), "r1").path)


@pytest.mark.parametrize("query", ENDLESS)
def test_a_query_without_an_end_is_stopped(store: str, query: str, capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    assert run(["sql", "--untrusted", "--time-limit", "0.5", query, "--store", store]) == 2
    assert time.monotonic() - begun < 30  # It would last for years.
    assert "took longer than 0.5 s" in capsys.readouterr().err


@pytest.mark.parametrize("query", LARGE)
def test_a_query_that_needs_too_much_memory_is_refused(
    store: str, query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sql", query, "--memory-limit", "100MB", "--store", store]) == 2
    assert "needs more than 100MB" in capsys.readouterr().err
    assert list(Path(store).rglob("*.tmp")) == []


def test_rows_are_cut_and_the_cut_is_told(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sql", "--store", store, "--format", "json", "SELECT range FROM range(5)"]
    assert run([*words, "--limit", "3"]) == 0
    written = capsys.readouterr()
    assert (len(json.loads(written.out)), "only the first 3 rows" in written.err) == (3, True)
    assert run([*words, "--limit", "5"]) == 0
    written = capsys.readouterr()
    assert (len(json.loads(written.out)), written.err) == (5, "")


def test_limits_leave_an_ordinary_question_alone(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", "--untrusted", "SELECT count(*) AS n FROM spans", "--store", store, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "n\n5\n"


def test_a_limit_that_is_no_size_is_refused(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sql", "SELECT 1", "--memory-limit", "much", "--store", store]) == 2
    assert "cannot be set" in capsys.readouterr().err


def test_limits_that_are_given_win_over_the_others() -> None:
    assert Limits(seconds=1).over(Limits("1GB", 30, 5)) == Limits("1GB", 1, 5)
