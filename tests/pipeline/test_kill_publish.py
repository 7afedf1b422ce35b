"""Publication under SIGKILL: whatever is left is staged runs and whole bundles, and the next call finishes."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from store_support import store_with

from planewise.pipeline.bundle import verify_bundle
from planewise.pipeline.publish import publish
from planewise.pipeline.qualify import current_evidence, qualify
from planewise.pipeline.store import Store

RUNS = 4
PUBLISH_AND_DIE = """
import os, signal, sys
from planewise.pipeline.store import Store
from planewise.pipeline.publish import publish
left = int(sys.argv[2])
def dying(call):
    def step(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)
    return step
for name in ("fsync", "rename", "replace", "chmod"):
    setattr(os, name, dying(getattr(os, name)))
publish(Store.open(sys.argv[1]))
print("survived")
"""
PUBLISH = """
import sys
from planewise.pipeline.store import Store
from planewise.pipeline.publish import publish
from planewise.pipeline import publish as _, qualify as _
print("ready", flush=True)
publish(Store.open(sys.argv[1]))
"""


def kill_publish_after(store: Store, delay_s: float) -> bool:
    """Publish in a child and SIGKILL it after a delay; True when it was still at work."""
    child = subprocess.Popen([sys.executable, "-c", PUBLISH, str(store.path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(delay_s)
    alive = child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    return alive


def assert_only_whole_runs(store: Store) -> None:
    """Every bundle verifies and has its evidence, and every run is in exactly one place."""
    for bundle in store.bundles():
        assert verify_bundle(bundle.path).run_id == bundle.run_id
        assert current_evidence(bundle.path) is not None
    places = [run.run_id for run in store.staged()] + [run.run_id for run in store.bundles()]
    assert sorted(places) == [f"r{n}" for n in range(RUNS)]


def kill_and_recover(template: Path, store_path: Path, kill: Callable[[Store], bool]) -> bool:
    """One round on a fresh copy of a store; returns whether the kill hit."""
    shutil.copytree(template, store_path)
    store = Store.open(store_path)
    hit = kill(store)
    assert_only_whole_runs(store)
    after = Store.open(store_path)
    assert {row.status for row in publish(after)} <= {"published", "already_published"}
    assert (len(after.bundles()), after.staged(), os.listdir(store_path / "tmp")) == (RUNS, [], [])
    assert_only_whole_runs(after)
    shutil.rmtree(store_path)
    return hit


def die_at(step: int) -> Callable[[Store], bool]:
    """Publish in a child that kills itself before its n-th durable step; True when it died."""

    def kill(store: Store) -> bool:
        command = [sys.executable, "-c", PUBLISH_AND_DIE, str(store.path), str(step)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) in ((-signal.SIGKILL, ""), (0, "survived\n")), done.stderr
        return done.returncode != 0

    return kill


def staged_store(tmp_path: Path, *, qualified: bool) -> tuple[Path, float]:
    """A store with staged runs, and how long an undisturbed publication of a copy of it takes, in seconds."""
    store = store_with(tmp_path, *(f"r{n}" for n in range(RUNS)))
    if qualified:
        qualify(store)
    shutil.copytree(store.path, tmp_path / "timed")
    start = time.monotonic()
    publish(Store.open(tmp_path / "timed"))
    return store.path, time.monotonic() - start


def kills(tmp_path: Path, count: int, *, qualified: bool, seed: int) -> None:
    """Kill at random moments of the whole publication."""
    template, usual_s = staged_store(tmp_path, qualified=qualified)
    chance = random.Random(seed)
    delays = [chance.uniform(0, usual_s) for _ in range(count)]
    rounds = [
        kill_and_recover(template, tmp_path / "round", lambda store, delay=delay: kill_publish_after(store, delay))
        for delay in delays
    ]
    assert any(rounds)


def test_a_killed_publication_leaves_only_whole_bundles_and_the_next_one_finishes(tmp_path: Path) -> None:
    kills(tmp_path, 3, qualified=True, seed=1)


def test_a_publication_that_dies_between_two_steps_leaves_only_whole_bundles(tmp_path: Path) -> None:
    template, _ = staged_store(tmp_path, qualified=True)
    for step in (0, 17, 40):
        assert kill_and_recover(template, tmp_path / "round", die_at(step))


@pytest.mark.slow
@pytest.mark.parametrize("qualified", [True, False])
def test_fifty_killed_publications_leave_only_whole_bundles(tmp_path: Path, qualified: bool) -> None:
    kills(tmp_path, 25, qualified=qualified, seed=2)


@pytest.mark.slow
def test_a_publication_that_dies_at_any_step_of_a_run_leaves_only_whole_bundles(tmp_path: Path) -> None:
    template, _ = staged_store(tmp_path, qualified=False)
    steps = itertools.count()
    while kill_and_recover(template, tmp_path / "round", die_at(step := next(steps))) and step < 60:
        pass
    assert step == 60
