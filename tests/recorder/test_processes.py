"""Real processes: a killed recorder, a forked one, and what importing the recorder loads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from recorder_support import TRAINING, counts, document, rows

from planewise import RecordingError, RecordingWarning, TraceSession

ROOT = Path(sys.modules["planewise"].__path__[0]).parent


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def test_importing_the_recorder_loads_neither_the_analysis_nor_torch() -> None:
    code = """
import sys, planewise
planewise.TraceSession, planewise.CaptureContract, planewise.ProfileRun
print([m for m in ("duckdb", "polars", "click", "torch", "msgspec", "rich") if m in sys.modules])
"""
    done = python(code)
    assert (done.stdout, done.stderr) == ("[]\n", "")


KILLED = """
import os, signal, sys, planewise
session = planewise.TraceSession.open(sys.argv[1], planewise.ProfileRun.training("demo", 1, "cpu"), run_id="killed")
region = session.begin_measurement("region")
for number in range(1000):
    session.record_scalar(region.id, f"x{number}", 1.0)
session.flush()
session.record_scalar(region.id, "never flushed", 1.0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_recorder_leaves_its_flushes_and_no_terminal_record(tmp_path: Path) -> None:
    done = python(KILLED, str(tmp_path / "c"))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert counts(tmp_path / "c") == {"spans_start": 2, "tensor_stats": 1000}
    assert [row["name"] for row in rows(tmp_path / "c", "spans_start")] == ["demo", "region"]
    assert document(tmp_path / "c", "header.json")["run"]["run_id"] == "killed"
    assert not (tmp_path / "c" / "terminal.json").exists()


KILLED_WHILE_WRITING = """
import os, signal, sys, threading, time, planewise
options = planewise.RecorderOptions(flush_rows=50)
run = planewise.ProfileRun.training("demo", 1, "cpu")
session = planewise.TraceSession.open(sys.argv[1], run, options=options)
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGKILL)).start()
while True:
    session.record_scalar(session.root_id, "x", 1.0)
"""


@pytest.mark.parametrize("delay", ["0.05", "0.11", "0.17"])
def test_a_recorder_killed_at_any_moment_leaves_only_readable_shards(tmp_path: Path, delay: str) -> None:
    assert python(KILLED_WHILE_WRITING, str(tmp_path / "c"), delay).returncode == -signal.SIGKILL
    seqs = sorted(row["seq"] for family in counts(tmp_path / "c") for row in rows(tmp_path / "c", family))
    assert len(seqs) >= 50
    assert seqs == list(range(len(seqs)))  # Batches are written in order, so what is there has no hole.


def in_fork(child: object) -> int:
    """Run ``child`` in a forked process; its exit code is the number that ``child`` returns."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = int(child())  # type: ignore[operator]
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_never_writes_into_its_parents_capture(tmp_path: Path) -> None:
    session = TraceSession.open(tmp_path / "c", TRAINING, run_id="parent")
    region = session.begin_measurement("region")

    def child() -> int:
        with pytest.warns(RecordingWarning):
            session.record_scalar(region.id, "child", 1.0)
        refusals = 0
        for ending in (session.flush, session.finish, lambda: session.finish_failed("x")):
            try:
                ending()
            except RecordingError as refusal:
                refusals += refusal.code == "forked_child"
        return 10 * refusals + session.lost_rows

    assert in_fork(child) == 31
    session.record_scalar(region.id, "parent", 1.0)
    region.close()
    session.finish()
    assert [row["label"] for row in rows(tmp_path / "c", "tensor_stats")] == ["parent"]
    assert document(tmp_path / "c", "terminal.json")["rows"] == {"spans_start": 2, "tensor_stats": 1, "spans_end": 2}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_may_leave_the_block_and_record_a_capture_of_its_own(tmp_path: Path) -> None:
    def child() -> int:
        with TraceSession.open(tmp_path / "child", TRAINING) as own:
            own.record_scalar(own.root_id, "x", 1.0)
        return 7

    with TraceSession.open(tmp_path / "c", TRAINING) as session:
        session.record_scalar(session.root_id, "x", 1.0)
        assert in_fork(child) == 7
        assert in_fork(lambda: session.__exit__(None, None, None) or 5) == 5
        assert not (tmp_path / "c" / "terminal.json").exists()
    assert document(tmp_path / "c", "terminal.json")["outcome"] == "complete"
    assert document(tmp_path / "child", "terminal.json")["outcome"] == "complete"
