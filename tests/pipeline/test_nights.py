"""Nights of a campaign: what is slower since tonight, still is, or no longer, in documents, views and exit codes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planewise.pipeline.catalog import build_catalog
from planewise.pipeline.commands.nightly import _check
from planewise.pipeline.nights import Change, record_night
from planewise.pipeline.store import Store
from planewise.pipeline.stores import open_store
from planewise.pipeline.summary import markdown
from planewise.recorder.errors import CheckFailed, InputRefused

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def document(name: str, verdict: str, night: int) -> dict[str, Any]:
    """A comparison over runs of one night."""
    runs = {cohort: [{"run_id": f"{cohort}-{night}", "manifest_sha256": "ab"}] for cohort in ("baseline", "candidate")}
    interval = {"lower_delta_ns": 1.0, "upper_delta_ns": 3.0}
    return {
        "name": name,
        "verdict": verdict,
        "inputs": runs,
        "interval": interval,
        "verdict_rule": "calibrated",
        "baseline_implementation_id": "git:1",
        "candidate_implementation_id": "git:2",
        "min_effect_percent": None,
        "baseline": {"median_ns": 10.0},
        "candidate": {"median_ns": 12.0},
        "median_delta_percent": 20.0,
        "reasons": [],
        "findings": [],
        "runs_needed": None,
    }


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store", create=True)


def night(store: Store, number: int, **verdicts: str) -> list[Change]:
    documents = [document(name, verdict, number) for name, verdict in verdicts.items()]
    return record_night(store, "c", documents, NOW)


def asked(store: Store, query: str) -> list[tuple[Any, ...]]:
    build_catalog(store.path)
    with open_store(store.path) as opened:
        return opened.sql(query).fetchall()


def test_a_slowdown_of_the_third_night_is_named_and_nothing_else(store: Store) -> None:
    for number in (1, 2):
        assert night(store, number, attention="inconclusive", mlp="candidate_faster") == []
    assert night(store, 3, attention="candidate_slower", mlp="candidate_faster") == [Change("attention", "new")]
    query = "SELECT comparison_id, state, night, candidate_implementation_id, candidate_median_ns FROM regressions"
    assert asked(store, query) == [("attention", "new", 3, "git:2", 12.0)]


def test_a_slowdown_stays_until_it_is_fixed(store: Store) -> None:
    found = [
        night(store, number, a=verdict)
        for number, verdict in enumerate(["candidate_slower"] * 2 + ["inconclusive"] * 2, 1)
    ]
    assert found == [[Change("a", "new")], [Change("a", "still_there")], [Change("a", "fixed")], []]
    assert asked(store, "FROM regressions") == []
    assert asked(store, "SELECT night, verdict FROM cohort_comparisons") == [(4, "inconclusive")]


def test_the_same_runs_again_are_no_other_night(store: Store) -> None:
    night(store, 1, a="inconclusive")
    assert night(store, 2, a="candidate_slower") == night(store, 2, a="candidate_slower") == [Change("a", "new")]
    assert asked(store, "SELECT count(*) FROM comparison_nights") == [(2,)]


def test_damaged_nights_are_refused_and_stay(store: Store) -> None:
    night(store, 1, a="inconclusive")
    (path,) = [p for p in (store.path / "tables" / "comparison_nights").iterdir() if p.name != "empty.parquet"]
    path.write_bytes(b"PAR1 no")
    with pytest.raises(InputRefused, match="holds no nights"):
        night(store, 2, a="inconclusive")
    assert path.read_bytes() == b"PAR1 no"


@pytest.mark.parametrize(
    ("state", "fail_on", "fails"),
    [
        ("new", "regression", True),
        ("still_there", "regression", False),
        ("still_there", "slower", True),
        ("fixed", "slower", False),
        ("new", None, False),
    ],
)
def test_a_night_fails_on_what_it_was_asked_to(state: str, fail_on: str | None, fails: bool) -> None:
    class Report:
        comparisons = (document("a", "candidate_slower", 1),)
        changes = (Change("a", state),)

    if fails:
        with pytest.raises(CheckFailed, match="slower: a"):
            _check(Report(), require_eligible=False, fail_on=fail_on)  # type: ignore[arg-type]
    else:
        _check(Report(), require_eligible=False, fail_on=fail_on)  # type: ignore[arg-type]


def test_a_night_fails_on_runs_that_do_not_qualify() -> None:
    class Report:
        comparisons = (document("a", "ineligible", 1),)
        changes = ()

    with pytest.raises(CheckFailed, match="not eligible: a"):
        _check(Report(), require_eligible=True, fail_on=None)  # type: ignore[arg-type]


def test_a_summary_is_a_table_that_no_name_breaks() -> None:
    told = document("a|b <script>\n*x*", "inconclusive", 1)
    told |= {"runs_needed": 12, "reasons": [{"code": "x", "message": "[y](z)"}]}
    lines = markdown([told])
    assert lines[2].startswith("| a\\|b \\<script\\>")
    assert lines[2].count(" | ") == 5
    assert "open (12 runs a cohort would settle it)" in lines[2]
    assert lines[-1].endswith("`x` \\[y\\](z)")
