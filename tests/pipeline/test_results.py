"""What is kept of each published run says what the views say, belongs to the bundle it was made from, and heals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bundles import publish as write_bundle
from cohorts import add_run
from store_support import store_with, tree

from planewise.pipeline import results_index
from planewise.pipeline.bundle import Receipt, verify_bundle
from planewise.pipeline.cli import run
from planewise.pipeline.loose import bundle_connection
from planewise.pipeline.manifest import write_manifest
from planewise.pipeline.publish import publish
from planewise.pipeline.requalify import requalify, results_of
from planewise.pipeline.results import Published, compute_results, load_results, make_results
from planewise.pipeline.results_index import RESULTS, known_results, results_folder
from planewise.pipeline.store import Store, run_key
from support import TinyStore

ROOT = Path(__file__).parent.parent.parent
OVER_RESULTS = ("series_outer_wall_time", "series_tensor_stats", "comparison_statistics", "campaign_status")


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after one night over the shipped captures: complete, failed and killed ones."""
    path = tmp_path_factory.mktemp("results") / "store"
    assert run(night(path)) == 3
    return path


def night(store: Path) -> list[str]:
    words = ["nightly", "--no-viewer", "--store", str(store), "--campaign", str(ROOT / "examples" / "campaign.json")]
    return [*words, str(ROOT / "examples" / "captures")]


def store_of(tmp_path: Path, *run_ids: str) -> Store:
    store = store_with(tmp_path, *run_ids)
    publish(store, viewers=False)
    return store


def published(store: Store) -> list[Published]:
    return [Published(bundle.path, verify_bundle(bundle.path)) for bundle in store.bundles()]


@pytest.mark.parametrize("name", [*RESULTS, *OVER_RESULTS])
def test_results_are_what_the_views_say_of_the_published_runs(shipped: Path, name: str) -> None:
    store = Store.open(shipped)
    requalify(store)
    with store.connect() as con:
        seen = con.execute(f'SELECT * FROM main."{name}" ORDER BY ALL').fetchall()
        kept = con.execute(f'SELECT * FROM results."{name}" ORDER BY ALL').fetchall()
        types = [con.execute(f'DESCRIBE {schema}."{name}"').fetchall() for schema in ("main", "results")]
    assert seen == kept
    assert kept or name == "device_clock_busy"  # The captures are of a CPU.
    assert [row[:2] for row in types[0]] == [row[:2] for row in types[1]]


def test_a_sum_of_more_than_64_bits_is_kept_exactly(tiny: TinyStore, tmp_path: Path) -> None:
    add_run(tiny, "r", 5)
    most = 2**63 - 1
    work = {"device": "d", "clock_id": "c", "duration_ns": most}
    tiny.add("device_intervals", {**work, "start_ns": 0}, {**work, "start_ns": most}, run_id="r")
    bundle = write_bundle(tiny, "r", tmp_path / "b")
    (tmp_path / "kept").mkdir()
    compute_results([Published(bundle, verify_bundle(bundle))], tmp_path / "kept")
    with bundle_connection([]) as con:
        load_results(con, [tmp_path / "kept"], ["r", "another"])
        assert con.execute("SELECT busy_ns, typeof(busy_ns) FROM device_clock_busy").fetchall() == [
            (2**64 - 2, "HUGEINT")
        ]


def test_rows_of_other_runs_of_a_batch_are_not_loaded(tmp_path: Path) -> None:
    store = store_of(tmp_path, "a", "b")
    batches = make_results(store, published(store))
    with bundle_connection([]) as con:
        load_results(con, batches, ["b"])
        assert con.execute("SELECT run_id FROM run_health").fetchall() == [("b",)]


def test_a_night_without_results_gives_the_same_documents_and_a_second_one_computes_nothing(
    shipped: Path, tmp_path: Path
) -> None:
    [campaign] = (shipped / "campaigns").iterdir()
    documents, batches = tree(campaign), {path: path.stat().st_ino for path in (shipped / "results").rglob("*.parquet")}
    assert run(night(shipped)) == 3
    assert {path: path.stat().st_ino for path in (shipped / "results").rglob("*.parquet")} == batches
    shutil.rmtree(shipped / "results")
    assert run(night(shipped)) == 3
    again = tree(campaign)
    assert {name: again[name] for name in again if name.endswith(".json")} == {
        name: documents[name] for name in documents if name.endswith(".json")
    }


@pytest.mark.parametrize("damaged", ["run_health.parquet", "index.json", "gradients.parquet"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_a_damaged_batch_is_made_again(tmp_path: Path, damaged: str, damage: str) -> None:
    store = store_of(tmp_path, "a", "b")
    [batch] = make_results(store, published(store))
    whole, file = tree(batch), batch / damaged
    content = file.read_bytes()
    if damage == "remove":
        file.unlink()
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes(flipped if damage == "flip" else content[:middle])
    [again] = make_results(store, published(store))
    assert tree(again) == whole


def test_other_views_compute_anew_and_keep_what_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(tmp_path, "a")
    assert [row.status for row in requalify(store)] == ["computed"]
    assert [row.status for row in requalify(store)] == ["kept"]
    [old] = set(known_results(store.path).values())
    monkeypatch.setattr(results_index, "views_digest", lambda: f"sha256:{'1' * 64}")
    assert known_results(store.path) == {}
    assert [row.status for row in requalify(store)] == ["computed"]
    assert results_folder(store.path).name == "1" * 16
    assert (old / "index.json").is_file()


def test_results_of_another_bundle_under_the_run_id_are_not_taken(tmp_path: Path) -> None:
    store = store_of(tmp_path, "a")
    [first] = make_results(store, published(store))
    [bundle] = store.bundles()
    shutil.move(bundle.path, tmp_path / "old")
    assert run(["ingest", str(tmp_path / "sources" / "0.jsonl"), "--store", str(store.path)]) == 0
    (store.staged()[0].path / "attachments").mkdir(exist_ok=True)
    (store.staged()[0].path / "attachments" / "note.txt").write_text("another bundle")
    publish(store, viewers=False)
    [second] = make_results(store, published(store))
    assert second != first
    assert not first.exists()
    assert len(known_results(store.path)) == 1


def test_a_bundle_that_changed_since_it_was_verified_gets_no_results(tmp_path: Path) -> None:
    store = store_of(tmp_path, "a")
    [bundle] = published(store)
    stale = Published(bundle.path, Receipt("a", "0" * 64, 1, 1))
    with pytest.raises(Exception, match="changed while the bundle was read"):
        make_results(store, [stale])
    assert known_results(store.path) == {}
    assert list((store.path / "tmp").iterdir()) == []


def test_a_run_that_cannot_be_computed_is_refused_and_stops_no_other(
    tmp_path: Path, tiny: TinyStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(tmp_path, "a", "b", "c")
    add_run(tiny, "bad", 5)
    bad = write_bundle(tiny, "bad", store.path / "bundles" / run_key("bad"))
    (bad / "planes" / "spans.parquet").write_bytes(b"no Parquet")
    write_manifest(bad, "bad")
    damaged = store.bundles()[0].path / "evidence.json"
    os.chmod(damaged, 0o644)
    damaged.write_bytes(b"{}")
    assert run(["requalify", "--store", str(store.path), "--format", "json"]) == 3
    told = capsys.readouterr()
    rows = {row["run_id"]: (row["status"], row["message"]) for row in json.loads(told.out)}
    assert {run_id: status for run_id, (status, _) in rows.items()} == {
        "a": "refused", "b": "computed", "c": "computed", "bad": "refused"
    }  # fmt: skip
    assert "evidence.json" in rows["a"][1]
    assert "the plane spans cannot be read" in rows["bad"][1]
    assert "computed 2, kept 0, refused 2" in told.err


def test_publish_keeps_results_of_what_it_published_and_warns_of_what_it_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_with(tmp_path, "a", "b")
    assert run(["publish", "--no-viewer", "--store", str(store.path)]) == 0
    assert {known.run_id for known in known_results(store.path)} == {"a", "b"}
    assert results_of(store, publish(store, viewers=False)) == []


def test_two_processes_at_once_leave_every_run_in_one_batch(tmp_path: Path) -> None:
    store = store_of(tmp_path, *"abcdef")
    make_results(store, published(store)[2:3])
    program = "import sys; from planewise.pipeline.cli import run; sys.exit(run(sys.argv[1:]))"
    words = [sys.executable, "-c", program, "requalify", "--store", str(store.path)]
    processes = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    with store.connect() as con:
        rows = con.execute("SELECT run_id FROM results.runs ORDER BY run_id").fetchall()
    assert rows == [(run_id,) for run_id in "abcdef"]
