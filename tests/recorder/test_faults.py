"""Faults of the disk: sticky, counted, warned of once, and never in the training loop."""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from pathlib import Path

import pytest
from recorder_support import TRAINING, document

from planewise import PlanewiseError, RecorderOptions, RecordingError, RecordingWarning, TraceSession
from planewise.recorder import files
from planewise.recorder.errors import Conflict


def broken_session(folder: Path, *, strict: bool = False) -> TraceSession:
    """A session whose folder is gone: a real fault at the next flush."""
    session = TraceSession.open(folder, TRAINING, options=RecorderOptions(strict=strict))
    shutil.rmtree(folder)
    with pytest.raises(RecordingError):
        session.flush()
    return session


def test_a_fault_is_sticky_and_later_rows_are_counted_as_lost(tmp_path: Path) -> None:
    session = broken_session(tmp_path / "c")
    assert session.lost_rows == 1
    with pytest.warns(RecordingWarning):
        session.record_scalar(session.root_id, "x", 1.0)
    for _ in range(9):
        session.record_scalar(session.root_id, "x", 1.0)
    assert session.lost_rows == 11
    (tmp_path / "c").mkdir()  # The disk is well again, but the capture has a hole.
    for ending in (session.flush, session.finish):
        with pytest.raises(RecordingError, match="11 rows are lost"):
            ending()
    assert list((tmp_path / "c").iterdir()) == []


def test_a_fault_warns_once_at_the_users_line(tmp_path: Path) -> None:
    session = broken_session(tmp_path / "c")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            with session.begin_span("a") as span:
                session.record_scalar(span.id, "x", 1.0)
    assert [(w.category, w.filename) for w in caught] == [(RecordingWarning, __file__)]


def test_a_fault_never_reaches_the_training_loop_even_when_warnings_are_errors(tmp_path: Path) -> None:
    session = broken_session(tmp_path / "c")
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(3):
            with session.begin_span("step") as span:
                session.record_scalar(span.id, "loss", 1.0)
                losses.append(step)
    assert losses == [0, 1, 2]


def test_strict_mode_raises_at_the_next_call(tmp_path: Path) -> None:
    session = broken_session(tmp_path / "c", strict=True)
    with pytest.raises(RecordingError):
        session.record_scalar(session.root_id, "x", 1.0)


def test_finish_failed_passes_a_fault_over_and_counts_the_losses(tmp_path: Path) -> None:
    session = broken_session(tmp_path / "c")
    (tmp_path / "c").mkdir()
    session.finish_failed("the disk went away")
    terminal = document(tmp_path / "c", "terminal.json")
    assert (terminal["outcome"], terminal["lost_rows"], terminal["rows"]) == ("failed", 1, {})


def test_a_fault_while_finishing_leaves_no_terminal_record(tmp_path: Path) -> None:
    session = TraceSession.open(tmp_path / "c", TRAINING)
    (tmp_path / "c" / "terminal.json.tmp").mkdir()
    with pytest.raises(RecordingError, match="terminal"):
        session.finish()
    with pytest.raises(RecordingError):
        session.finish()
    assert not (tmp_path / "c" / "terminal.json").exists()


def test_a_full_disk_leaves_whole_shards_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = TraceSession.open(tmp_path / "c", TRAINING)
    session.flush()

    def full(descriptor: int, rest: memoryview) -> None:
        os.write(descriptor, rest[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_write_all", full)
    session.record_scalar(session.root_id, "x", 1.0)
    with pytest.raises(RecordingError, match="No space left"):
        session.finish()
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["header.json", "spans_start-000001.parquet"]


def test_leaving_the_block_after_a_fault_raises_and_keeps_the_bodys_own_exception_first(tmp_path: Path) -> None:
    def run(fault: Exception | None) -> None:
        with TraceSession.open(tmp_path / str(fault), TRAINING):
            shutil.rmtree(tmp_path / str(fault))
            if fault:
                raise fault

    with pytest.raises(RecordingError):
        run(None)
    with pytest.raises(ValueError, match="mine") as caught:
        run(ValueError("mine"))
    assert "could not be ended as failed" in caught.value.__notes__[0]


@pytest.mark.parametrize("occupant", ["folder", "file"])
def test_an_occupied_path_is_refused_and_left_alone(tmp_path: Path, occupant: str) -> None:
    path = tmp_path / "c"
    kept = path / "kept" if occupant == "folder" else path
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine")
    with pytest.raises(Conflict):
        TraceSession.open(path, TRAINING)
    assert kept.read_text() == "mine"
    assert sorted(tmp_path.rglob("*"))[-1] == kept


def test_a_capture_is_never_recorded_over(tmp_path: Path) -> None:
    with TraceSession.open(tmp_path / "c", TRAINING, run_id="first"):
        pass
    with pytest.raises(Conflict, match="never written over"):
        TraceSession.open(tmp_path / "c", TRAINING, run_id="second")
    assert document(tmp_path / "c", "header.json")["run"]["run_id"] == "first"


def test_an_empty_folder_is_taken_and_a_claimed_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    TraceSession.open(tmp_path / "empty", TRAINING).finish()
    (tmp_path / "claimed").mkdir()
    (tmp_path / "claimed" / "header.json.tmp").write_bytes(b"")
    with pytest.raises(PlanewiseError):
        TraceSession.open(tmp_path / "claimed", TRAINING)


def test_an_unwritable_parent_is_a_recording_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match="cannot write the header"):
        TraceSession.open(tmp_path / "file" / "c", TRAINING)
