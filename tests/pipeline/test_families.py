"""Two cohorts compared label by label: pairs, gaps, the order of captures, margins, and what the command refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cohorts import add_cohorts

from planewise.pipeline.cli import run
from planewise.pipeline.families import FamilyRules, compare_metric
from support import TinyStore

ROOT = Path(__file__).parents[2]
RUNS = [f"{cohort}{number}" for cohort in "bc" for number in range(6)]
IN_TURN = [f"{cohort}{number}" for number in range(6) for cohort in "bc"]


def moments(order: list[str]) -> dict[str, dict[str, Any]]:
    return {run: {"timestamp": f"2026-01-01T00:{minute:02}:00+00:00"} for minute, run in enumerate(order)}


def labelled(
    tiny: TinyStore, values: dict[str, dict[str, float]], runs: dict[str, dict[str, Any]] | None = None
) -> TinyStore:
    """Six against six runs with the rms of labels; ``values`` gives label -> run -> rms."""
    add_cohorts(tiny, [100] * 6, [100] * 6, runs=runs)
    for label, of_runs in values.items():
        for run_id, rms in of_runs.items():
            tiny.add("tensor_stats", {"label": label, "rms": rms, "abs_max": rms, "mean": 0.0}, run_id=run_id)
    return tiny


def test_pairs_are_compared_pair_by_pair(tiny: TinyStore) -> None:
    # Pair n lies at 100 n, and the candidate is 1 above: no order between the cohorts, every difference is 1.
    runs = {name: {"identity": {"pair_id": f"p{name[1]}"}} for name in RUNS}
    values = {name: 100.0 * int(name[1]) + (name[0] == "c") for name in RUNS}
    document = compare_metric(labelled(tiny, {"loss": values}, runs).con, "c", "tensor_rms")
    (row,) = document["rows"]
    assert document["paired"]
    assert (row["shift"], row["lower"], row["upper"], row["verdict"]) == (1.0, 1.0, 1.0, "candidate_higher")
    assert row["p"] == 2 / 2**6


def test_a_label_that_some_runs_lack_is_judged_without_them_and_not_jointly(tiny: TinyStore) -> None:
    whole = {name: float(int(name[1]) + 10 * (name[0] == "c")) for name in RUNS}
    part = {name: value for name, value in whole.items() if name != "b3"}
    document = compare_metric(labelled(tiny, {"whole": whole, "part": part}).con, "c", "tensor_rms")
    rows = {row["label"]: row for row in document["rows"]}
    assert (rows["part"]["baseline_runs"], rows["part"]["p_joint"]) == (5, None)
    assert rows["whole"]["p_joint"] == 2 / 924


def test_few_runs_and_many_labels_are_judged_by_exchanging_whole_runs(tiny: TinyStore) -> None:
    # Holm at six against six: 2 / 924 a label, times 24 labels is above 5 %.
    steady = {f"l{n}": {name: float((int(name[1]) * (n + 1)) % 7) for name in RUNS} for n in range(23)}
    slower = {name: float(int(name[1]) + 100 * (name[0] == "c")) for name in RUNS}
    con = labelled(tiny, {**steady, "slower": slower}).con
    document = compare_metric(con, "c", "tensor_rms")
    assert (document["adjust"], document["fewest_runs"]) == ("joint", 7)
    assert [row["label"] for row in document["rows"] if row["verdict"] == "candidate_higher"] == ["slower"]
    by_holm = compare_metric(con, "c", "tensor_rms", FamilyRules(adjust="holm"))
    assert "too_few_for_labels" in [finding["code"] for finding in by_holm["findings"]]
    assert {row["verdict"] for row in by_holm["rows"]} == {"inconclusive"}


def test_a_margin_holds_for_each_label_by_its_own_baseline(tiny: TinyStore) -> None:
    near = {name: 1000 + int(name[1]) / 10 + (name[0] == "c") for name in RUNS}
    document = compare_metric(labelled(tiny, {"near": near}).con, "c", "tensor_rms", FamilyRules(min_effect=0.01))
    assert [row["verdict"] for row in document["rows"]] == ["no_relevant_change"]
    assert document["min_effect_percent"] == 1.0


@pytest.mark.parametrize(
    ("order", "design", "verdict"),
    [
        (IN_TURN, "interleaved", "candidate_higher"),
        (RUNS, "separated", "inconclusive"),
        ([*RUNS[:5], "c0", "b5", *RUNS[7:]], "mixed", "inconclusive"),
    ],
)
def test_a_label_that_drifts_stays_open_unless_captured_in_turn(
    tiny: TinyStore, order: list[str], design: str, verdict: str
) -> None:
    values = {name: float(int(name[1]) + 10 * (name[0] == "c")) for name in RUNS}
    document = compare_metric(labelled(tiny, {"loss": values}, moments(order)).con, "c", "tensor_rms")
    (row,) = document["rows"]
    assert (document["design"], row["verdict"], row["drifts"]) == (design, verdict, design != "interleaved")


def test_a_device_with_several_clocks_is_compared_clock_by_clock(tiny: TinyStore) -> None:
    runs = {name: {"device": "cuda:0", "contract": {"device_timing": "complete"}} for name in RUNS}
    add_cohorts(tiny, [100] * 6, [100] * 6, runs=runs)
    for name in RUNS:
        for device, clock in (("cuda:0", "a"), ("cuda:0", "b"), ("cuda:1", "a")):
            interval = {"device": device, "clock_id": clock, "start_ns": 0, "duration_ns": 5}
            tiny.add("device_intervals", interval, run_id=name)
    document = compare_metric(tiny.con, "c", "device_busy")
    assert sorted(row["label"] for row in document["rows"]) == ["cuda:0 a", "cuda:0 b", "cuda:1"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A store of the shipped captures, and the words that compare the slower candidate with the faster baseline."""
    store = str(tmp_path_factory.mktemp("families") / "store")
    for words in (["ingest", str(ROOT / "examples" / "captures")], ["qualify"], ["publish"]):
        run([*words, "--store", store])
    where = "comparison_identity.implementation_id = 'train_tiny:{}' AND run_id NOT LIKE '%profile%'"
    cohorts = ["--baseline-where", where.format("fused"), "--candidate-where", where.format("eager")]
    return ["compare", "--store", store, *cohorts]


def test_the_command_fails_on_a_label_that_takes_more_and_writes_a_summary(
    published: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    words = [*published, "--metric", "host_self_time", "--fail-on", "slower", "--summary-file", str(summary)]
    assert run(words) == 1
    assert "train_tiny/update-000006" in capsys.readouterr().err
    assert "| train\\_tiny/update-000006 | **more** |" in summary.read_text()
    assert "labels without a proven change" in summary.read_text()


def test_a_margin_of_labels_reaches_the_document(published: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*published, "--metric", "host_self_time", "--min-effect", "99%", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["min_effect_percent"]) == ("planewise/comparison-family/2", 99.0)
    assert len(document["rows"]) == document["questions"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--adjust", "bh"], "need --metric"),
        (["--label-prefix", "x"], "need --metric"),
        (["--metric", "host_self_time", "--protocol-verdict"], "no verdict for labels"),
        (["--metric", "tensor_rms", "--fail-on", "slower"], "is not slower"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    published: list[str], words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*published, *words]) == 2
    assert message in capsys.readouterr().err
