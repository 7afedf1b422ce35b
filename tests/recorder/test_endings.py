"""How sessions end, and what is left when nobody ends them: exits, interrupts, threads, copies, two at a time."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from recorder_support import TRAINING, counts, document, rows

from planewise import ContractError, TraceSession
from planewise.recorder.errors import UsageError

ROOT = Path(sys.modules["planewise"].__path__[0]).parent


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )


UNFINISHED = """
import sys, planewise
def record():
    run = planewise.ProfileRun.training("demo", 1, "cpu")
    session = planewise.TraceSession.open(sys.argv[1], run, run_id="left")
    region = session.begin_measurement("region")
    for number in range(1000):
        session.record_scalar(region.id, f"x{number}", 1.0)
record()
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize("code", ["0", "3"])
def test_a_program_that_ends_without_finish_leaves_every_row_and_no_terminal_record(tmp_path: Path, code: str) -> None:
    done = python(UNFINISHED, str(tmp_path / "c"), code)
    assert (done.returncode, done.stderr) == (int(code), "")
    assert counts(tmp_path / "c") == {"spans_start": 2, "tensor_stats": 1000}
    assert not (tmp_path / "c" / "terminal.json").exists()


def test_pandas_is_imported_where_the_session_is_opened_and_never_by_the_writer(tmp_path: Path) -> None:
    # pyarrow imports it at its first conversion; at exit, in another thread, that fails and takes the rows with it.
    stub = tmp_path / "site" / "pandas" / "__init__.py"
    stub.parent.mkdir(parents=True)
    stub.write_text("import threading\n__version__ = '0.1.0'\nimported_by = threading.current_thread().name\n")
    code = "import sys; sys.path.insert(0, sys.argv[3])" + UNFINISHED.replace(
        "sys.exit(int(sys.argv[2]))", "import pandas; print(pandas.imported_by)"
    )
    done = python(code, str(tmp_path / "c"), "0", str(tmp_path / "site"))
    assert done.stdout == "MainThread\n"
    assert counts(tmp_path / "c") == {"spans_start": 2, "tensor_stats": 1000}


FINISHED_AT_EXIT = """
import atexit, sys, planewise
session = planewise.TraceSession.open(sys.argv[1], planewise.ProfileRun.training("demo", 1, "cpu"))
session.record_scalar(session.root_id, "x", 1.0)
atexit.register(session.finish)
"""


def test_a_program_may_finish_its_session_at_exit(tmp_path: Path) -> None:
    done = python(FINISHED_AT_EXIT, str(tmp_path / "c"))
    assert (done.returncode, done.stderr) == (0, "")
    assert document(tmp_path / "c", "terminal.json")["outcome"] == "complete"


LOST_FOLDER = """
import shutil, sys, planewise
session = planewise.TraceSession.open(sys.argv[1], planewise.ProfileRun.training("demo", 1, "cpu"))
shutil.rmtree(sys.argv[1])
"""


def test_a_fault_at_exit_ends_the_program_as_it_would_have_ended(tmp_path: Path) -> None:
    done = python(LOST_FOLDER, str(tmp_path / "c"))
    assert (done.returncode, done.stderr) == (0, "")


def test_two_sessions_at_once_keep_their_spans_records_and_ends_apart(tmp_path: Path) -> None:
    first, second = (TraceSession.open(tmp_path / name, TRAINING, run_id=name) for name in "ab")
    outer = first.begin_span("a1")
    other = second.begin_span("b1")
    inner = first.begin_span("a2")
    first.record_scalar(first.current_span_id, "x", 1.0)
    outer_of_second = second.current_span_id
    inner.close(), outer.close()
    first.finish()
    second.record_scalar(outer_of_second, "y", 2.0)
    other.close()
    second.finish()
    assert [row["span_id"] for row in rows(tmp_path / "a", "tensor_stats")] == [inner.id]
    assert [row["span_id"] for row in rows(tmp_path / "b", "tensor_stats")] == [other.id]
    assert [row["parent_id"] for row in rows(tmp_path / "b", "spans_start")] == [None, "s1"]


def test_any_thread_may_finish_and_then_every_thread_is_refused(tmp_path: Path) -> None:
    session = TraceSession.open(tmp_path / "c", TRAINING)
    session.begin_span("a").close()
    thread = threading.Thread(target=session.finish)
    thread.start()
    thread.join()
    for call in (session.finish, lambda: session.record_scalar(session.root_id, "x", 1.0)):
        with pytest.raises(ContractError) as caught:
            call()
        assert caught.value.code == "session_ended"
    assert document(tmp_path / "c", "terminal.json")["rows"] == {"spans_start": 2, "spans_end": 2}


def test_of_many_threads_that_finish_at_once_one_succeeds(tmp_path: Path) -> None:
    session = TraceSession.open(tmp_path / "c", TRAINING)
    codes: list[str] = []
    start = threading.Barrier(4)

    def end() -> None:
        start.wait()
        try:
            session.finish()
            codes.append("finished")
        except ContractError as refusal:
            codes.append(refusal.code)

    threads = [threading.Thread(target=end) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(codes) == ["finished", "session_ended", "session_ended", "session_ended"]
    assert counts(tmp_path / "c") == {"spans_start": 1, "spans_end": 1}


def test_an_ended_session_takes_no_attachment_and_copies_nothing(tmp_path: Path) -> None:
    session = TraceSession.open(tmp_path / "c", TRAINING)
    session.finish()
    with pytest.raises(ContractError) as caught:
        session.record_attachment(__file__, title="late")
    assert caught.value.code == "session_ended"
    assert not (tmp_path / "c" / "attachments").exists()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_and_its_guards_are_not_copied_and_the_refusal_says_what_to_do(tmp_path: Path, copied) -> None:
    with TraceSession.open(tmp_path / "c", TRAINING) as session, session.begin_span("a") as guard:
        for thing in (session, [session], guard):
            if copied is copy.copy and thing is not session:
                continue  # A shallow copy of something that holds the session does not copy the session.
            with pytest.raises(UsageError, match="session of its own in each process") as caught:
                copied(thing)
            assert caught.value.code == "session_not_copyable"


@pytest.mark.parametrize("moment", ["before the row", "after the row"])
def test_an_interrupt_inside_begin_measurement_never_ends_as_complete(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = TraceSession.open(tmp_path / "c", TRAINING)
    real = session._writer.put

    def interrupted(family: str, row: tuple[object, ...]) -> None:
        if moment == "after the row":
            real(family, row)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(session._writer, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.begin_measurement("region")
    session.begin_span("cleanup").close()  # What follows the interrupt nests as before it.
    with pytest.raises(ContractError, match=r"spans still open: s2 \('region'\)"):
        session.finish()
    session.finish_failed("interrupted")
    assert [row["name"] for row in rows(tmp_path / "c", "spans_start")][-1] == "cleanup"
    assert rows(tmp_path / "c", "spans_start")[-1]["parent_id"] == "s1"


class Mute(Exception):
    """An exception whose text cannot be had."""

    def __str__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ValueError("no loss"), "ValueError: no loss"),
        (ValueError("half \ud800"), "ValueError: half ?"),
        (Mute(), "Mute: it has no text"),
        (SystemExit(0), "SystemExit: 0"),
        (GeneratorExit(), "GeneratorExit: "),
    ],
    ids=["text", "surrogate", "mute", "exit", "generator"],
)
def test_whatever_leaves_the_block_is_the_reason_and_passes_on(
    tmp_path: Path, fault: BaseException, reason: str
) -> None:
    with pytest.raises(type(fault)), TraceSession.open(tmp_path / "c", TRAINING) as session:  # noqa: PT012
        with session.begin_span("ends"):
            session.record_scalar(session.current_span_id, "x", 1.0)
        session.begin_span("left open")
        raise fault
    terminal = document(tmp_path / "c", "terminal.json")
    assert (terminal["outcome"], terminal["reason"]) == ("failed", reason)
    assert counts(tmp_path / "c") == {"spans_start": 3, "tensor_stats": 1, "spans_end": 1}


def test_an_exception_ends_the_spans_it_passes_and_marks_nothing_else(tmp_path: Path) -> None:
    with TraceSession.open(tmp_path / "c", TRAINING) as session:
        with pytest.raises(ZeroDivisionError), session.begin_measurement("region"), session.begin_span("inner"):
            _ = 1 / 0
        assert session.current_span_id == session.root_id
    assert document(tmp_path / "c", "terminal.json")["outcome"] == "complete"
    assert [row["id"] for row in rows(tmp_path / "c", "spans_end")] == ["s3", "s2", "s1"]
