"""Stores on object storage, against a real S3 server on loopback."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_support import tree, write_trace

s3fs = pytest.importorskip("s3fs")
from s3_support import BUCKET, FaultyServer  # noqa: E402

from planewise.pipeline import mirrored, remote  # noqa: E402
from planewise.pipeline.cli import run  # noqa: E402
from planewise.pipeline.mirrored import CACHE, MirroredStore  # noqa: E402
from planewise.pipeline.remote import Remote  # noqa: E402
from planewise.pipeline.stores import open_place, open_store  # noqa: E402
from planewise.recorder.errors import InputRefused, UsageError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
STORE = f"s3://{BUCKET}/team/store"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    for name, value in {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    made = FaultyServer()
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.url)
    files().mkdir(BUCKET)
    yield made
    made.share = 0.0
    files().rm(BUCKET, recursive=True)
    made.stop()


def files() -> object:
    return s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)


def other_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str = "other") -> None:
    """From now on this process has another mirror."""
    monkeypatch.setenv(CACHE, str(tmp_path / name))


def publish(tmp_path: Path, *run_ids: str, store: str = STORE) -> None:
    sources = [str(write_trace(tmp_path / f"{run_id}.jsonl", run_id)) for run_id in run_ids]
    assert run(["ingest", *sources, "--store", store]) == 0
    assert run(["publish", "--store", store, "--no-viewer"]) == 0


def test_what_one_machine_publishes_another_reads_byte_for_byte(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path, "a", "b")
    here = tree(MirroredStore.at(STORE).path / "bundles")
    other_machine(tmp_path, monkeypatch)
    store = MirroredStore.at(STORE)
    assert store.held() == []
    assert len(store.bundles()) == 2
    assert tree(store.path / "bundles") == here
    assert run(["verify", str(store.bundles()[0].path)]) == 0


def test_sql_reads_the_storage_itself_and_nothing_else(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "a", "b")
    other_machine(tmp_path, monkeypatch)
    capsys.readouterr()
    query = "SELECT run_id, status, (SELECT count(*) FROM bundles) AS bundles FROM run_health ORDER BY run_id"
    assert run(["sql", query, "--store", STORE, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows == [{"run_id": name, "status": "valid", "bundles": 2} for name in ("a", "b")]
    assert MirroredStore.at(STORE).held() == [], "nothing was fetched"
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for query in (f"FROM read_csv('{secret}')", f"FROM read_text('s3://{BUCKET}/other/x')"):
        assert run(["sql", query, "--store", STORE]) != 0
        assert "1" not in capsys.readouterr().out
    with open_store(STORE) as opened:
        assert opened.sql("SELECT count(*) FROM device_clock_busy").fetchall() != [(0,)]


def test_an_empty_store_answers_with_no_rows(server: FaultyServer, capsys: pytest.CaptureFixture[str]) -> None:
    MirroredStore.at(STORE, create=True)
    assert run(["sql", "SELECT count(*) AS n FROM run_health", "--store", STORE, "--format", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["n", "0"]


def test_the_manifest_comes_last_and_once(server: FaultyServer, tmp_path: Path) -> None:
    publish(tmp_path, "a")
    puts = [path for method, path in server.requests if method == "PUT" and "/bundles/" in path]
    assert [path.endswith("bundle.json") for path in puts] == [False] * (len(puts) - 1) + [True]
    server.requests.clear()
    assert run(["publish", "--store", STORE]) == 0
    assert not [path for method, path in server.requests if method == "PUT"], "a second publish writes nothing"


def test_a_run_id_taken_by_other_content_is_a_conflict_and_stays_as_it_is(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "a")
    first = tree(MirroredStore.at(STORE).path / "bundles")
    other_machine(tmp_path, monkeypatch)
    altered = write_trace(tmp_path / "x.jsonl", "a")
    altered.write_text(altered.read_text().replace('"f32"', '"bf16"'))
    words = ["--store", STORE, "--output-format", "json"]
    assert run(["ingest", str(altered), *words]) == 3, "the storage is asked before it is staged"
    assert "in the store with other content" in capsys.readouterr().out
    # Two machines at once: the second staged its run before the first published.
    other_machine(tmp_path, monkeypatch, "third")
    late = MirroredStore.at(STORE)
    monkeypatch.setattr(MirroredStore, "find", lambda store, run_id: None)
    assert run(["ingest", str(altered), "--store", STORE]) == 0
    assert run(["publish", "--store", STORE, "--no-viewer", "--format", "json"]) == 3
    assert "another bundle was published under its run id" in capsys.readouterr().out
    assert late.held() == []
    assert len(list((late.path / "conflicts").iterdir())) == 1
    other_machine(tmp_path, monkeypatch, "reader")
    store = MirroredStore.at(STORE)
    assert len(store.bundles()) == 1
    assert tree(store.path / "bundles") == first


def test_what_a_killed_publisher_left_is_no_bundle_and_is_swept(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "a")
    store = MirroredStore.at(STORE)
    [bundle] = store.held()
    manifest = f"{STORE}/bundles/{bundle.key}/bundle.json"
    half = f"{STORE}/bundles/{bundle.key}/{'0' * 16}/planes/spans.parquet"
    files().pipe_file(half, b"half")
    publish(tmp_path, "b")
    assert len(store.remote.published()) == 2
    assert run(["vacuum", "--store", STORE, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1] or "[]") == []
    monkeypatch.setattr(mirrored, "ORPHAN_S", -1.0)
    assert run(["vacuum", "--store", STORE, "--dry-run", "--format", "json"]) == 0
    assert [row["path"] for row in json.loads(capsys.readouterr().out)] == [half]
    assert run(["vacuum", "--store", STORE]) == 0
    assert not files().exists(half)
    assert files().exists(manifest)
    assert len(MirroredStore.at(STORE).bundles()) == 2
    # A bundle without its manifest is none, and all of it goes.
    files().rm_file(manifest)
    assert len(store.remote.published()) == 1
    assert run(["vacuum", "--store", STORE]) == 0
    assert files().find(f"{STORE}/bundles/{bundle.key}") == []


def test_a_damaged_bundle_is_named_and_stops_no_other(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(tmp_path, "a", "b")
    store = MirroredStore.at(STORE)
    bundle = store.remote.bundle(store.held()[0].key)
    url = store.remote.file_url(bundle, "planes/spans.parquet")
    content = bytearray(files().cat_file(url))
    content[len(content) // 2] ^= 1
    files().pipe_file(url, bytes(content))
    other_machine(tmp_path, monkeypatch)
    store = MirroredStore.at(STORE)
    assert [bundle.run_id for bundle in store.bundles()] == ["b"]
    assert list(store.faults) == [bundle.key]
    assert "planes/spans.parquet" in store.faults[bundle.key]
    plan = tmp_path / "campaign.json"
    planned = [{"capture_step": 3, "run_id": run_id} for run_id in ("a", "b", "c")]
    document = {"schema": "planewise/campaign/1", "campaign_id": "c", "entrypoint": "demo::train", "planned": planned}
    plan.write_text(json.dumps(document))
    capsys.readouterr()
    run(["campaign", "status", str(plan), "--store", STORE, "--format", "json"])
    states = [row["state"]["state"] for row in json.loads(capsys.readouterr().out)["captures"]]
    assert states == ["verification_failed", "published", "missing"]


def test_a_night_on_one_machine_is_known_on_the_next(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "campaign.json"
    planned = [{"capture_step": 3, "run_id": run_id} for run_id in ("a", "b")]
    document = {"schema": "planewise/campaign/1", "campaign_id": "c", "entrypoint": "demo::train", "planned": planned}
    plan.write_text(json.dumps(document))
    for name in ("a", "b"):
        source = write_trace(tmp_path / f"{name}.jsonl", name)
        other_machine(tmp_path, monkeypatch, f"machine-{name}")
        assert run(["nightly", str(source), "--store", STORE, "--campaign", str(plan), "--no-viewer"]) == 0
    assert "2 published" in capsys.readouterr().out
    other_machine(tmp_path, monkeypatch, "reader")
    assert run(["sql", "SELECT state, count(*) AS n FROM campaign_status GROUP BY ALL", "--store", STORE,
                "--format", "csv"]) == 0  # fmt: skip
    assert capsys.readouterr().out.split() == ["state,n", "published,2"]


def test_dropped_connections_and_500s_cost_time_and_nothing_else(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.share = 0.1
    publish(tmp_path, "a", "b", "c")
    other_machine(tmp_path, monkeypatch)
    store = MirroredStore.at(STORE)
    assert [bundle.run_id for bundle in store.bundles()] == ["a", "b", "c"]
    assert server.faults > 5


def test_a_storage_that_gives_no_answer_is_said_plainly_and_the_next_publish_goes_on(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(remote, "_RETRIES", {"max_attempts": 1})
    source = write_trace(tmp_path / "a.jsonl", "a")
    assert run(["ingest", str(source), "--store", STORE]) == 0
    server.share = 1.0
    assert run(["publish", "--store", STORE, "--no-viewer"]) == 3
    error = capsys.readouterr().err
    assert STORE in error
    assert "AWS_ENDPOINT_URL" in error
    assert "Traceback" not in error
    server.share = 0.0
    assert run(["publish", "--store", STORE, "--no-viewer"]) == 0
    assert len(Remote(STORE).published()) == 1


@pytest.mark.parametrize("url", ["s3://", "s3://bucket", "s3://bucket/", "s3://bucket/../x", "s3://bucket//x"])
def test_an_address_that_is_none_is_refused(url: str, server: FaultyServer) -> None:
    with pytest.raises(UsageError, match="BUCKET/PREFIX"):
        open_place(url, create=True)


def test_there_is_no_store_where_none_was_made(server: FaultyServer) -> None:
    with pytest.raises(InputRefused, match="no store here"):
        open_place(STORE)


@pytest.mark.slow
def test_publishers_that_are_killed_lose_and_double_nothing(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two machines publish the same runs at once and are killed at random instants, thirty times."""
    chance = random.Random(5)
    run_ids = [f"run-{number}" for number in range(6)]
    sources = [str(write_trace(tmp_path / f"{run_id}.jsonl", run_id)) for run_id in run_ids]
    publish(tmp_path, *run_ids, store=f"s3://{BUCKET}/expected")
    expected = tree(MirroredStore.at(f"s3://{BUCKET}/expected").path / "bundles")
    for trial in range(15):
        place = f"s3://{BUCKET}/trial-{trial}"
        publishers = []
        for machine in ("one", "two"):
            other_machine(tmp_path, monkeypatch, f"{machine}-{trial}")
            assert run(["ingest", *sources, "--store", place]) == 0
            program = "from planewise.pipeline.cli import main; main()"
            words = ["publish", "--store", place, "--no-viewer"]
            publishers.append(subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.DEVNULL))
        for publisher in publishers:
            time.sleep(chance.uniform(0.2, 1.5))
            publisher.send_signal(signal.SIGKILL)
            publisher.wait()
        for machine in ("one", "two"):
            other_machine(tmp_path, monkeypatch, f"{machine}-{trial}")
            assert run(["publish", "--store", place, "--no-viewer"]) == 0
        other_machine(tmp_path, monkeypatch, "reader")
        store = MirroredStore.at(place)
        assert [bundle.run_id for bundle in store.bundles()] == run_ids
        assert tree(store.path / "bundles") == expected
        shutil.rmtree(tmp_path / "reader")
