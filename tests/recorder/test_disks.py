"""Disks that refuse, vanish, fill up or lag, in real processes: training goes on, and is told once, at its own line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from recorder_support import rows

from planewise.ingest.base import READERS

ROOT = Path(sys.modules["planewise"].__path__[0]).parent

TRAINING = """
import os, resource, shutil, sys, time, warnings
import planewise
folder = sys.argv[1]
run = planewise.ProfileRun.training("demo", 1, "cpu")
options = planewise.RecorderOptions(flush_rows=1000, **OPTIONS)
losses = 0
try:
    with planewise.TraceSession.open(folder, run, run_id="r", options=options) as session:
        with session.begin_measurement("region") as region:
            for step in range(20):
                if step == 5:
                    session.flush()
                    BREAK
                for number in range(500):
                    session.record_scalar(region.id, f"x{number}", (step + number) ** 0.5)  # the user's line
                time.sleep(0.005)
                losses += 1
except planewise.RecordingError as fault:
    print("finish:", fault)
print("steps:", losses)
print("lost:", session.lost_rows)
"""
FAULTS = {
    "full": "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))",
    "removed": "shutil.rmtree(folder)",
    "read-only": "os.chmod(folder, 0o555); os.geteuid() or os.seteuid(65534)",
}


def train(folder: Path, break_: str, options: str = "") -> subprocess.CompletedProcess[str]:
    code = TRAINING.replace("BREAK", break_).replace("**OPTIONS", options)
    script = folder.parent / "train.py"
    script.write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, script, folder], env=environment, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("fault", FAULTS)
def test_a_disk_that_fails_stops_no_step_warns_once_at_the_users_line_and_surfaces_at_finish(
    tmp_path: Path, fault: str
) -> None:
    done = train(tmp_path / "c", FAULTS[fault])
    assert done.returncode == 0, done.stderr
    finish, steps, lost = done.stdout.splitlines()
    assert steps == "steps: 20"
    assert finish.startswith(f"finish: {tmp_path / 'c'}: writing failed (")
    assert "free the disk or choose another folder" in finish
    assert done.stderr.count("RecordingWarning") == 1
    line = next(n for n, text in enumerate(TRAINING.splitlines(), 1) if "# the user's line" in text)
    assert f"train.py:{line}: RecordingWarning" in done.stderr
    # 15 steps of 500 scalars, the end of the region and nothing else; a shard before the limit may have got through.
    assert 0 < int(lost.split()[1]) <= 7501


@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_what_was_written_before_the_fault_is_read_as_an_interrupted_run(tmp_path: Path, fault: str) -> None:
    train(tmp_path / "c", FAULTS[fault])
    folder = tmp_path / "c"
    folder.chmod(0o755)
    assert not (folder / "terminal.json").exists()
    assert not list(folder.glob("*.tmp"))
    batches = {batch.plane: batch.table for batch in READERS["capture"].read(folder)}
    assert batches["runs"].column("outcome").to_pylist() == [None]
    assert len(rows(folder, "tensor_stats")) >= 2500


def test_in_strict_mode_the_step_after_the_fault_raises(tmp_path: Path) -> None:
    done = train(tmp_path / "c", FAULTS["removed"], "strict=True")
    finish, steps, _ = done.stdout.splitlines()
    assert "writing failed" in finish
    assert 5 <= int(steps.split()[1]) < 20
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that not even root can write, /proc")
def test_a_folder_that_cannot_be_made_is_refused_before_training_starts() -> None:
    done = train_at("/proc/planewise/c")
    assert done.stdout.startswith("finish: /proc/planewise/c: cannot write the header")
    assert "choose a folder that can be written" in done.stdout


def train_at(folder: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys, planewise\n"
        "try:\n"
        "    planewise.TraceSession.open(sys.argv[1], planewise.ProfileRun.training('demo', 1, 'cpu'))\n"
        "except planewise.RecordingError as fault:\n"
        "    print('finish:', fault)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, folder], env=environment, capture_output=True, text=True, check=False
    )


SLOW = """
import os, resource, sys, time
import planewise
from planewise.recorder import shards
real = shards.write_bytes
def slow(path, content):
    time.sleep(0.02)
    real(path, content)
shards.write_bytes = slow
run = planewise.ProfileRun.training("demo", 1, "cpu")
options = planewise.RecorderOptions(flush_rows=2000, pending_flushes=2)
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with planewise.TraceSession.open(sys.argv[1], run, options=options) as session:
    waiting = []
    for step in range(60):
        for number in range(2000):
            session.record_scalar(session.root_id, "x" * 500 + str(number), 1.0)
        waiting.append(len(session._writer._pending))
        if step == 20:
            before = used()
print(max(waiting), used() - before)
"""


def test_a_disk_slower_than_the_recording_makes_it_wait_and_memory_stays_bounded(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SLOW, tmp_path / "c"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    pending, grown_kib = map(int, done.stdout.split())
    assert pending <= 2
    assert grown_kib < 30_000  # 40 further batches of 1 MB were recorded after the first 20.
    assert len(rows(tmp_path / "c", "tensor_stats")) == 120_000


FORKED = """
import os, sys, warnings, planewise
warnings.simplefilter("always")
session = planewise.TraceSession.open(sys.argv[1], planewise.ProfileRun.training("demo", 1, "cpu"), run_id="r")
region = session.begin_measurement("region")
pid = os.fork()
if pid == 0:
    for number in range(5):
        with session.begin_span("child") as span:
            session.record_scalar(span.id, "child", 1.0)
        session.record_attachment(__file__, title="child")
    print("lost in the child:", session.lost_rows, flush=True)
    sys.exit(0)  # A regular end, with everything that runs at exit.
os.waitpid(pid, 0)
session.record_scalar(region.id, "parent", 1.0)
region.close()
session.finish()
"""


def test_a_child_that_forks_off_while_recording_writes_nothing_and_is_told_once(tmp_path: Path) -> None:
    script = tmp_path / "forked.py"
    script.write_text(FORKED)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script, tmp_path / "c"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "lost in the child: 20\n"
    assert done.stderr.count("RecordingWarning") == 1
    assert "is a fork of the recording one" in done.stderr
    assert [row["label"] for row in rows(tmp_path / "c", "tensor_stats")] == ["parent"]
    assert not (tmp_path / "c" / "attachments").exists()
