"""The nightly job over the shipped captures: what a newcomer sees, and what a second night changes."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from planewise.pipeline.cli import run

ROOT = Path(__file__).parent.parent.parent
CAPTURES = ROOT / "examples" / "captures"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nightly") / "store"
    assert night(path) == 3
    return path


def night(store: Path) -> int:
    return run(["nightly", "--store", str(store), "--campaign", str(ROOT / "examples/campaign.json"), str(CAPTURES)])


def test_second_night_publishes_nothing_anew_and_says_so(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path.name for path in (store / "bundles").iterdir())
    assert night(store) == 3
    lines = capsys.readouterr().out.splitlines()
    assert "ingested: 0 ingested, 22 unchanged, 1 refused" in lines
    assert "published: nothing anew, 22 already published" in lines
    assert sorted(path.name for path in (store / "bundles").iterdir()) == before


def test_report_tells_status_verdict_hottest_activations_and_what_to_try_next(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    night(store)
    lines = capsys.readouterr().out.splitlines()
    [refused] = [line for line in lines if line.startswith("  refused")]
    assert "corrupt-01" in refused
    assert "campaign train-tiny: 23 planned, 20 published, 2 failed, 1 missing" in lines
    assert any(line.startswith("comparison eager against fused: candidate_faster") for line in lines)
    assert sum(line.startswith(("  1. ", "  2. ", "  3. ")) for line in lines) == 3
    assert len(lines) - lines.index("try next:") - 1 == 3


def test_campaign_and_comparison_are_views_of_the_catalogue(store: Path) -> None:
    with duckdb.connect(str(store / "planewise.duckdb"), read_only=True) as con:
        states = dict(con.execute("SELECT state, count(*) FROM campaign_status GROUP BY state").fetchall())
        runs = con.execute("SELECT cohort, runs FROM comparison_statistics ORDER BY cohort").fetchall()
    assert states == {"published": 20, "failed_run": 2, "missing": 1}
    assert runs == [("baseline", 8), ("candidate", 8)]


def test_documents_of_the_campaign_agree_with_the_views(store: Path) -> None:
    [folder] = (store / "campaigns").iterdir()
    [comparison] = [json.loads(path.read_text()) for path in folder.glob("comparison-*.json")]
    status = json.loads((folder / "status.json").read_text())
    with duckdb.connect(str(store / "planewise.duckdb"), read_only=True) as con:
        medians = con.execute("SELECT median_ns FROM comparison_statistics ORDER BY cohort").fetchall()
    assert [(comparison[c]["median_ns"],) for c in ("baseline", "candidate")] == medians
    assert [status[name] for name in ("planned", "published", "missing", "failed")] == [23, 20, 1, 2]


def test_campaign_status_and_where_comparison_give_the_same_answers(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = str(ROOT / "examples/campaign.json")
    assert run(["campaign", "status", manifest, "--store", str(store), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["published"] == 20
    where = [
        "--baseline-where",
        "run_id SIMILAR TO 'eager-[0-9]+'",
        "--candidate-where",
        "run_id SIMILAR TO 'fused-[0-9]+'",
    ]
    assert run(["compare", "--store", str(store), *where, "--require-eligible", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "candidate_faster"


def test_series_of_repeated_steps_is_refused(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["series", "--manifest", str(ROOT / "examples/campaign.json"), "--store", str(store)]
    assert run(arguments) == 3
    assert "missing" in capsys.readouterr().err


def test_series_of_one_bundle_gives_its_labels(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = next(path for path in (store / "bundles").iterdir() if path.name.startswith("eager-01"))
    assert run(["series", "--bundle", str(bundle), "--label-prefix", "loss", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["outer_wall_time"][0]["outer_wall_time_ns"] > 0
    assert all(label.startswith("loss") for label in document["tensor_stats"])
