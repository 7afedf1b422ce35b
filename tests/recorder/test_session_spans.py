"""Span guards: nesting, threads, clocks, and how a session ends."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from recorder_support import TRAINING, counts, document, rows, values

from planewise import ContractError, ExecutionStep, SpanId, SpanKind, TraceSession


@pytest.fixture
def session(tmp_path: Path) -> TraceSession:
    return TraceSession.open(tmp_path / "c", TRAINING, run_id="r")


def test_recording_nothing_gives_an_empty_valid_capture(session: TraceSession) -> None:
    folder = session.finish()
    assert counts(folder) == {"spans_start": 1, "spans_end": 1}
    terminal = document(folder, "terminal.json")
    assert (terminal["outcome"], terminal["rows"], terminal["lost_rows"]) == (
        "complete",
        {"spans_start": 1, "spans_end": 1},
        0,
    )
    assert "reason" not in terminal
    assert values(folder, "spans_end")[0]["duration_ns"] == terminal["timestamp_ns"]


def test_spans_nest_and_carry_their_kind_step_and_parent(session: TraceSession) -> None:
    with session.begin_measurement("region") as region:
        with session.begin_step_span("forward", ExecutionStep.FORWARD, SpanKind.MODULE) as forward:
            with session.begin_span("matmul", SpanKind.OP):
                assert session.current_span_id == "s4"
            assert session.current_span_id == forward.id
        assert isinstance(region.id, SpanId)
    started = values(session.finish(), "spans_start")
    assert [(s["id"], s["parent_id"], s["name"], s["span_kind"], s["measured"], s["step"]) for s in started] == [
        ("s1", None, "demo::train", "function", False, None),
        ("s2", "s1", "region", "function", True, None),
        ("s3", "s2", "forward", "module", False, "forward"),
        ("s4", "s3", "matmul", "op", False, None),
    ]
    assert started[0]["start_ns"] == 0


def test_nested_spans_never_reach_outside_their_parents(session: TraceSession) -> None:
    for _ in range(200):
        with session.begin_span("a"), session.begin_span("b"), session.begin_span("c"):
            pass
    folder = session.finish()
    durations = {row["id"]: row["duration_ns"] for row in rows(folder, "spans_end")}
    spans = {
        s["id"]: (s["parent_id"], s["start_ns"], s["start_ns"] + durations[s["id"]])
        for s in rows(folder, "spans_start")
    }
    for parent, start, end in spans.values():
        assert parent is None or (spans[parent][1] <= start and end <= spans[parent][2])


def test_seq_counts_over_all_families_in_record_order(session: TraceSession) -> None:
    with session.begin_span("a") as span:
        session.record_scalar(span.id, "x", 1.0)
    folder = session.finish()
    found = sorted((row["seq"], family) for family in counts(folder) for row in rows(folder, family))
    assert found == [(0, "spans_start"), (1, "spans_start"), (2, "tensor_stats"), (3, "spans_end"), (4, "spans_end")]


def test_a_guard_closes_once_and_then_keeps_its_duration(session: TraceSession) -> None:
    guard = session.begin_span("a")
    assert guard.elapsed_ns() >= 0
    guard.close()
    took = guard.elapsed_ns()
    guard.close()
    assert (guard.elapsed_ns(), guard.is_open) == (took, False)
    assert len(rows(session.finish(), "spans_end")) == 2


def test_closing_an_outer_guard_first_is_refused_and_writes_nothing(session: TraceSession) -> None:
    outer, inner = session.begin_span("outer"), session.begin_span("inner")
    with pytest.raises(ContractError) as caught:
        outer.close()
    assert (caught.value.code, outer.is_open) == ("span_not_innermost", True)
    inner.close()
    outer.close()
    assert [row["id"] for row in rows(session.finish(), "spans_end")] == ["s3", "s2", "s1"]


def test_threads_have_their_own_stacks_and_start_under_the_root_or_a_given_parent(session: TraceSession) -> None:
    def work(parent: SpanId | None) -> None:
        with session.begin_span("worker", parent=parent), session.begin_span("inner"):
            pass

    with session.begin_measurement("region") as region:
        for parent in (None, region.id):
            thread = threading.Thread(target=work, args=(parent,))
            thread.start()
            thread.join()
        session.begin_span("main").close()
    started = values(session.finish(), "spans_start")
    assert [(s["name"], s["parent_id"]) for s in started[2:]] == [
        ("worker", "s1"),
        ("inner", "s3"),
        ("worker", "s2"),
        ("inner", "s5"),
        ("main", "s2"),
    ]
    assert len({s["thread_id"] for s in started[1:]}) >= 2


def test_a_parent_waits_for_the_spans_that_other_threads_began_in_it(session: TraceSession) -> None:
    region = session.begin_measurement("region")
    other: list[object] = []
    thread = threading.Thread(target=lambda: other.append(session.begin_span("worker", parent=region.id)))
    thread.start()
    thread.join()
    with pytest.raises(ContractError) as caught:
        region.close()
    assert caught.value.code == "span_not_innermost"
    other[0].close()  # type: ignore[attr-defined]
    region.close()
    session.finish()


def test_many_threads_lose_no_row_and_share_no_seq(session: TraceSession) -> None:
    def work() -> None:
        for _ in range(200):
            with session.begin_span("w") as span:
                session.record_scalar(span.id, "x", 1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    folder = session.finish()
    assert counts(folder) == {"spans_start": 801, "tensor_stats": 800, "spans_end": 801}
    seqs = [row["seq"] for family in counts(folder) for row in rows(folder, family)]
    assert sorted(seqs) == list(range(2402))


@pytest.mark.parametrize("foreign", ["s1", "nonsense", None])
def test_a_span_id_that_no_guard_gave_is_refused(session: TraceSession, foreign: str | None) -> None:
    with pytest.raises(ContractError) as caught:
        session.record_scalar(foreign, "x", 1.0)  # type: ignore[arg-type]
    assert caught.value.code == "foreign_span"
    session.finish()


def test_a_span_of_another_session_or_an_ended_parent_is_refused(session: TraceSession, tmp_path: Path) -> None:
    with TraceSession.open(tmp_path / "other", TRAINING) as other, pytest.raises(ContractError):
        session.record_scalar(other.root_id, "x", 1.0)
    ended = session.begin_span("a")
    ended.close()
    with pytest.raises(ContractError) as caught:
        session.begin_span("b", parent=ended.id)
    assert caught.value.code == "parent_not_open"
    session.finish()


def test_completed_host_work_lies_under_the_root_and_leaves_the_stack(session: TraceSession) -> None:
    began = time.perf_counter_ns()
    with session.begin_measurement("region"):
        start = session.host_timestamp_ns(began)
        span_id = session.record_completed_host_span("loader", SpanKind.FUNCTION, start, 1)
        assert session.current_span_id == "s2"
        session.record_scalar(span_id, "rows", 5)
    folder = session.finish()
    loader = values(folder, "spans_start")[2]
    assert (loader["parent_id"], loader["start_ns"], loader["measured"], loader["thread_id"]) == (
        "s1",
        start,
        False,
        None,
    )
    assert values(folder, "spans_end")[0] == {"id": "s3", "duration_ns": 1}


@pytest.mark.parametrize(("start", "duration"), [(0, 0), (0, 2**62), (2**63 - 1, 1), (-1, 1)])
def test_completed_host_work_is_positive_fits_and_is_over(session: TraceSession, start: int, duration: int) -> None:
    with pytest.raises(ContractError):
        session.record_completed_host_span("loader", SpanKind.FUNCTION, start, duration)
    assert counts(session.finish()) == {"spans_start": 1, "spans_end": 1}


def test_an_instant_before_the_session_has_no_host_time(session: TraceSession) -> None:
    with pytest.raises(ContractError) as caught:
        session.host_timestamp_ns(0)
    assert caught.value.code == "before_session"
    session.finish()


def test_finish_with_open_spans_is_refused_and_can_be_repeated(session: TraceSession) -> None:
    guard = session.begin_span("a")
    with pytest.raises(ContractError, match="s2"):
        session.finish()
    guard.close()
    assert document(session.finish(), "terminal.json")["outcome"] == "complete"


def test_finish_failed_keeps_open_spans_open_and_later_guards_silent(session: TraceSession) -> None:
    with session.begin_measurement("region"):
        folder = session.finish_failed("diverged")
    assert counts(folder) == {"spans_start": 2}
    terminal = document(folder, "terminal.json")
    assert (terminal["outcome"], terminal["reason"]) == ("failed", "diverged")


def test_finish_failed_needs_a_reason(session: TraceSession) -> None:
    with pytest.raises(ContractError):
        session.finish_failed(" \u00a0")
    session.finish()


def test_an_exception_ends_the_capture_as_failed_and_passes_on(tmp_path: Path) -> None:
    def diverge() -> None:
        with TraceSession.open(tmp_path / "c", TRAINING) as session:
            session.begin_span("left open")
            raise ZeroDivisionError("no loss")

    with pytest.raises(ZeroDivisionError, match="no loss"):
        diverge()
    assert document(tmp_path / "c", "terminal.json")["reason"] == "ZeroDivisionError: no loss"


def test_an_interrupt_passes_and_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), TraceSession.open(tmp_path / "c", TRAINING):
        raise KeyboardInterrupt
    assert document(tmp_path / "c", "terminal.json")["reason"] == "KeyboardInterrupt: "


def test_leaving_the_block_with_open_spans_fails_the_capture_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="spans still open"), TraceSession.open(tmp_path / "c", TRAINING) as session:
        session.begin_span("left open")
    assert document(tmp_path / "c", "terminal.json")["outcome"] == "failed"


def test_an_ended_session_takes_no_more_records(session: TraceSession) -> None:
    root = session.root_id
    session.finish()
    for call in (
        lambda: session.record_scalar(root, "x", 1),
        lambda: session.begin_span("a"),
        session.flush,
        session.finish,
        lambda: session.finish_failed("why"),
    ):
        with pytest.raises(ContractError) as caught:
            call()
        assert caught.value.code == "session_ended"
