"""A Ray cluster gives what processes of this machine give, whatever becomes of its nodes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_support import tree, write_trace

from planewise.pipeline.cli import run
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.progress import Progress
from planewise.pipeline.publish import publish
from planewise.pipeline.qualify import qualify
from planewise.pipeline.side_by_side import RayCluster, side_by_side
from planewise.pipeline.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ray = pytest.importorskip("ray")
RUNS = tuple(f"run-{number:02}" for number in range(12))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Three nodes of one machine, the head without a CPU for tasks."""
    from ray.cluster_utils import Cluster

    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        made.add_node(num_cpus=2)
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


def published(folder: Path, jobs: int | RayCluster, sources: list[Path]) -> tuple[list[object], dict[str, bytes]]:
    store = Store.open(folder, create=True)
    ingested = ingest_sources(store, sources, jobs=jobs)
    qualified = qualify(store, jobs=jobs)
    bundles = publish(store, jobs=jobs, viewers=False)
    rows = [
        [(row.run_id, row.status, row.rows) for row in ingested],
        [(row.run_id, row.status, row.errors, row.warnings, row.message) for row in qualified],
        [(row.run_id, row.manifest_sha256, row.message) for row in bundles],
    ]
    assert list((store.path / "tmp").iterdir()) == []
    return rows, tree(store.path / "bundles")


def test_a_cluster_gives_the_bundles_of_one_process_byte_for_byte(tmp_path: Path, cluster) -> None:
    sources = [write_trace(tmp_path / f"{run_id}.jsonl", run_id) for run_id in RUNS]
    here = published(tmp_path / "here", 1, sources)
    assert published(tmp_path / "there", RayCluster(cluster.address), sources) == here


def test_a_node_that_dies_on_the_way_changes_nothing_in_the_outcome(tmp_path: Path, cluster) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    items = [(marks, number) for number in range(12)]
    results, killed = [], None
    for result in side_by_side(_slow, items, RayCluster(cluster.address), killed=lambda item: ("killed", item)):
        results.append(result)
        killed = killed or kill_a_busy_node(cluster, marks)
    assert results == [number * 10 for number in range(12)]
    starts = [name.partition("-")[0] for name in os.listdir(marks)]
    assert killed, "a node was killed while it worked"
    assert len(starts) > len(set(starts)) == 12, "what ran on the node ran again elsewhere"


def test_a_node_that_dies_during_a_stage_loses_and_doubles_no_run(tmp_path: Path, cluster) -> None:
    sources = [write_trace(tmp_path / f"{run_id}.jsonl", run_id) for run_id in RUNS]
    _, expected = published(tmp_path / "here", 1, sources)
    store = Store.open(tmp_path / "there", create=True)
    for stage in (ingest, publish_all):
        node = cluster.add_node(num_cpus=2)

        def kill_once(done: int, total: int, what: str, node: object = node) -> None:
            if done == 1 and node in cluster.worker_nodes:
                cluster.remove_node(node, allow_graceful=False)

        stage(store, sources, RayCluster(cluster.address), kill_once)
        assert node not in cluster.worker_nodes, "the node died while the stage ran"
    assert tree(store.path / "bundles") == expected
    assert store.staged() == []


def ingest(store: Store, sources: list[Path], jobs: RayCluster, progress: Progress) -> None:
    found = ingest_sources(store, sources, jobs=jobs, progress=progress)
    assert {row.status for row in found} <= {"ingested", "unchanged"}


def publish_all(store: Store, sources: list[Path], jobs: RayCluster, progress: Progress) -> None:
    found = publish(store, jobs=jobs, progress=progress, viewers=False)
    assert {row.status for row in found} <= {"published", "already_published"}
    assert len(found) == len(sources)


def test_a_worker_that_always_dies_costs_its_thing_alone(cluster) -> None:
    results = side_by_side(_dies_on_3, [1, 3, 4], RayCluster(cluster.address), killed=lambda item: -item)
    assert list(results) == [10, -3, 40]


def test_commands_take_ray_and_publish(tmp_path: Path, cluster, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [str(write_trace(tmp_path / f"{run_id}.jsonl", run_id)) for run_id in RUNS[:3]]
    words = ["--store", str(tmp_path / "s"), "--ray", cluster.address]
    assert run(["ingest", *sources, *words]) == 0
    assert run(["qualify", *words]) == 0
    assert run(["publish", *words]) == 0
    assert len(Store.open(tmp_path / "s").bundles()) == 3
    assert run(["publish", *words, "--jobs", "2"]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_no_cluster_is_said_plainly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_trace(tmp_path / "a.jsonl", "a")
    assert run(["ingest", str(source), "--store", str(tmp_path / "s"), "--ray", "127.0.0.1:1"]) == 2
    error = capsys.readouterr().err
    assert "no Ray cluster at '127.0.0.1:1'" in error
    assert "HOST:PORT" in error


def kill_a_busy_node(cluster, marks: Path) -> str | None:
    """Kill the node of a task that has just begun; its id."""
    for mark in marks.iterdir():
        if time.time() - mark.stat().st_mtime < 0.5:
            busy = mark.read_text()
            node = next(node for node in cluster.worker_nodes if node.node_id == busy)
            cluster.remove_node(node, allow_graceful=False)
            return busy
    return None


def _slow(item: tuple[Path, int]) -> int:
    marks, number = item
    (marks / f"{number}-{time.time_ns()}").write_text(ray.get_runtime_context().get_node_id())
    time.sleep(3)
    return number * 10


def _dies_on_3(item: int) -> int:
    if item == 3:
        os._exit(1)
    return item * 10
