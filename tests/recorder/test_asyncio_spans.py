"""Spans of asyncio tasks, callbacks, generators and threads that interleave: nobody stands in another's way."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from recorder_support import TRAINING, document, rows, values

from planewise import ContractError, SpanId, TraceSession


@pytest.fixture
def session(tmp_path: Path) -> TraceSession:
    return TraceSession.open(tmp_path / "c", TRAINING, run_id="r")


def parents(folder: Path) -> dict[str, str | None]:
    """The name of each span's parent, by the span's name."""
    spans = values(folder, "spans_start")
    names = {span["id"]: span["name"] for span in spans}
    return {span["name"]: names.get(span["parent_id"]) for span in spans}


def assert_every_span_lies_inside_its_parent(folder: Path) -> None:
    took = {row["id"]: row["duration_ns"] for row in rows(folder, "spans_end")}
    ends = {row["id"]: (row["start_ns"], row["start_ns"] + took[row["id"]]) for row in rows(folder, "spans_start")}
    for row in rows(folder, "spans_start"):
        if row["parent_id"] is not None:
            outer, inner = ends[row["parent_id"]], ends[row["id"]]
            assert outer[0] <= inner[0] <= inner[1] <= outer[1]


async def two_deep(session: TraceSession, name: str, turns: int, parent: SpanId | None = None) -> None:
    with session.begin_span(name, parent=parent):
        await asyncio.sleep(0)
        with session.begin_span(f"{name}/in"):
            for _ in range(turns):
                await asyncio.sleep(0)


def test_tasks_that_interleave_nest_each_for_itself(session: TraceSession) -> None:
    async def main() -> None:
        await asyncio.gather(*(two_deep(session, f"t{number}", 5 - number) for number in range(4)))

    with session.begin_measurement("region"):
        asyncio.run(main())
    folder = session.finish()
    expected = {"demo::train": None, "region": "demo::train"}
    for number in range(4):
        expected |= {f"t{number}": "region", f"t{number}/in": f"t{number}"}
    assert parents(folder) == expected
    assert_every_span_lies_inside_its_parent(folder)


def test_a_task_that_outlives_the_span_it_was_created_in_stops_nobody(session: TraceSession) -> None:
    async def main() -> None:
        with session.begin_span("creator"):
            task = asyncio.create_task(two_deep(session, "task", 3))
            await asyncio.sleep(0)
        await task

    asyncio.run(main())
    folder = session.finish()
    assert parents(folder) == {
        "demo::train": None,
        "creator": "demo::train",
        "task": "demo::train",
        "task/in": "task",
    }
    assert_every_span_lies_inside_its_parent(folder)


def test_a_task_lies_under_its_creator_when_parent_says_so_and_is_waited_for(session: TraceSession) -> None:
    async def main() -> None:
        with session.begin_measurement("region") as region:
            await asyncio.gather(*(two_deep(session, f"t{n}", n, region.id) for n in range(3)))
            assert session.current_span_id == region.id

    asyncio.run(main())
    found = parents(session.finish())
    assert [found[f"t{n}"] for n in range(3)] == ["region"] * 3


def test_closing_a_parent_before_the_task_that_was_put_under_it_is_refused_by_name(session: TraceSession) -> None:
    async def main() -> str:
        early = session.begin_span("early")
        task = asyncio.create_task(two_deep(session, "late", 3, early.id))
        await asyncio.sleep(0)
        with pytest.raises(ContractError) as caught:
            early.__exit__(None, None, None)
        await task
        early.close()
        return str(caught.value)

    message = asyncio.run(main())
    assert "span s2 ('early')" in message
    assert "s3 ('late')" in message
    assert "close the inner guards first" in message
    session.finish()


def test_a_cancelled_task_ends_its_spans(session: TraceSession) -> None:
    async def main() -> None:
        task = asyncio.create_task(two_deep(session, "cancelled", 10**6))
        await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert len(rows(session.finish(), "spans_end")) == 3


def test_callbacks_and_worker_threads_of_a_loop_begin_outside_its_tasks(session: TraceSession) -> None:
    def callback(name: str, done: asyncio.Event | None = None) -> None:
        with session.begin_span(name):
            pass
        if done is not None:
            done.set()

    async def main() -> None:
        done = asyncio.Event()
        with session.begin_span("task"):
            asyncio.get_running_loop().call_soon(callback, "callback", done)
            await done.wait()
            await asyncio.to_thread(callback, "thread")

    with session.begin_measurement("region"):
        asyncio.run(main())
    found = parents(session.finish())
    assert (found["task"], found["callback"], found["thread"]) == ("region", "region", "demo::train")


def test_records_go_to_the_innermost_span_of_their_own_task(session: TraceSession) -> None:
    async def work(name: str) -> None:
        with session.begin_span(name) as span:
            for _ in range(3):
                await asyncio.sleep(0)
                assert session.current_span_id == span.id

    async def main() -> None:
        await asyncio.gather(*map(work, "abc"))
        assert session.current_span_id == session.root_id

    asyncio.run(main())
    session.finish()


def generator(session: TraceSession, name: str, parent: SpanId | None = None) -> Iterator[int]:
    with session.begin_span(name, parent=parent):
        yield from range(2)


def test_a_suspended_generators_span_is_the_innermost_one_of_its_consumer(session: TraceSession) -> None:
    for number in generator(session, "generator"):
        with session.begin_span(f"item {number}"):
            pass
    found = parents(session.finish())
    assert (found["item 0"], found["item 1"], found["generator"]) == ("generator", "generator", "demo::train")


def test_generators_with_a_parent_of_their_own_interleave_in_any_order(session: TraceSession) -> None:
    with session.begin_measurement("region") as region:
        first, second = (generator(session, name, region.id) for name in ("first", "second"))
        next(first), next(second)
        assert list(first) == [1]
        assert session.current_span_id == "s4"
        assert list(second) == [1]
        assert session.current_span_id == region.id
    folder = session.finish()
    assert (parents(folder)["first"], parents(folder)["second"]) == ("region", "region")


def test_closing_what_a_suspended_generator_lies_under_is_refused_and_closing_the_generator_heals_it(
    session: TraceSession,
) -> None:
    outer = session.begin_span("outer")
    held = generator(session, "held")
    next(held)
    with pytest.raises(ContractError, match="'held'"):
        outer.close()
    held.close()  # type: ignore[attr-defined]
    outer.close()
    session.finish()


def test_an_asynchronous_generator_that_another_task_closes_ends_its_span(session: TraceSession) -> None:
    async def numbers() -> AsyncIterator[int]:
        with session.begin_span("numbers"):
            yield 1
            yield 2

    async def main() -> None:
        source = numbers()
        assert await anext(source) == 1
        await asyncio.create_task(source.aclose())  # type: ignore[attr-defined]
        with session.begin_span("after"):
            pass

    asyncio.run(main())
    folder = session.finish()
    assert parents(folder)["after"] == "demo::train"
    assert len(rows(folder, "spans_end")) == 3


def test_spans_that_end_out_of_order_for_ever_keep_no_ended_guard(session: TraceSession) -> None:
    last = session.begin_span("a", parent=session.root_id)
    for _ in range(300):
        following = session.begin_span("a", parent=session.root_id)
        last.close()
        last = following
    depth, guard = 0, session._innermost.get()
    while guard is not None:
        depth, guard = depth + 1, guard._outer
    assert depth <= 3
    last.close()
    session.finish()


def test_a_guard_may_be_closed_on_another_thread(session: TraceSession) -> None:
    outer, inner = session.begin_span("outer"), session.begin_span("inner")
    thread = threading.Thread(target=inner.close)
    thread.start()
    thread.join()
    assert session.current_span_id == outer.id
    outer.close()
    assert [row["id"] for row in rows(session.finish(), "spans_end")] == ["s3", "s2", "s1"]


def test_an_ended_guard_keeps_no_task_alive(session: TraceSession) -> None:
    kept = []

    async def work() -> None:
        with session.begin_span("a") as guard:
            kept.append(guard)

    async def main() -> weakref.ref[asyncio.Task[None]]:
        task = asyncio.create_task(work())
        await task
        return weakref.ref(task)

    task = asyncio.run(main())
    gc.collect()
    assert task() is None
    session.finish()


def test_tasks_of_two_sessions_do_not_mix(session: TraceSession, tmp_path: Path) -> None:
    other = TraceSession.open(tmp_path / "other", TRAINING)

    async def main() -> None:
        await asyncio.gather(two_deep(session, "mine", 4), two_deep(other, "theirs", 2), two_deep(session, "too", 1))

    asyncio.run(main())
    for ended in (session.finish(), other.finish()):
        assert document(ended, "terminal.json")["outcome"] == "complete"
    assert parents(session.path) == {
        "demo::train": None,
        "mine": "demo::train",
        "mine/in": "mine",
        "too": "demo::train",
        "too/in": "too",
    }
    assert set(parents(other.path)) == {"demo::train", "theirs", "theirs/in"}
