"""The host clock and the span stacks of a session (protocol 14.3, guide 3 and 4)."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

from .errors import ContractError
from .shards import ShardWriter
from .sink import RecordSink
from .spans import Innermost, SpanGuard, SpanId, SpanThread, enclosing, running_task
from .values import count, end_of, member, optional_count, positive, shown, text
from .vocabulary import ExecutionStep, SpanKind

_MODULES = sys.modules


class SpanCalls(RecordSink):
    """Begins and ends spans; each start and each end is one reading of the clock, taken under the session's lock."""

    root_id: SpanId
    """Identity of the root span, which lasts as long as the session."""

    def __init__(self, writer: ShardWriter) -> None:
        super().__init__()
        self._writer = writer
        self._accepting = True
        self._seq = itertools.count()
        self._span_numbers = itertools.count(1)
        self._thread = SpanThread()
        self._innermost: Innermost = ContextVar("planewise_innermost_span", default=None)
        self._open_spans: dict[str, SpanGuard] = {}
        self._observed: list[tuple[Any, ...]] | None = None
        self._was_observed = False

    def _require_open(self) -> None:
        raise NotImplementedError

    def _tell_of_fault(self) -> None:
        raise NotImplementedError

    def _start_clock(self) -> None:
        self._origin = time.perf_counter_ns()

    def _row(self, family: str, values: tuple[Any, ...]) -> None:
        """Buffer a row; the caller holds the lock."""
        self._writer.put(family, (next(self._seq),) + values)  # noqa: RUF005  Unpacking would build a list first.

    def elapsed_ns(self) -> int:
        """Nanoseconds on the host clock since the session opened."""
        return time.perf_counter_ns() - self._origin

    def host_timestamp_ns(self, instant_ns: int) -> int:
        """A ``time.perf_counter_ns()`` reading on the host clock; :class:`ContractError` when before the session."""
        if instant_ns < self._origin:
            raise ContractError(
                f"lies {self._origin - instant_ns} ns before the session", position="instant_ns", code="before_session"
            )
        return count(instant_ns - self._origin, "instant_ns")

    def begin_measurement(self, name: str) -> SpanGuard:
        """Begin the measured region; a successful capture has exactly one."""
        return self._begin(name, SpanKind.FUNCTION, measured=True)

    def begin_span(self, name: str, kind: SpanKind = SpanKind.FUNCTION, *, parent: SpanId | None = None) -> SpanGuard:
        """Begin a span under the innermost open one of this thread or task, or under ``parent``, any open span.

        A parent is closed after everything that was begun under it, whoever began that.
        """
        return self._begin(name, kind, parent=parent)

    def begin_step_span(
        self,
        name: str,
        step: ExecutionStep,
        kind: SpanKind = SpanKind.FUNCTION,
        *,
        parent: SpanId | None = None,
    ) -> SpanGuard:
        """Begin a span that is one part of a training step."""
        return self._begin(name, kind, step=member(ExecutionStep, step, "step"), parent=parent)

    def record_completed_host_span(
        self, name: str, kind: SpanKind, start_ns: int, duration_ns: int, *, thread_id: int | None = None
    ) -> SpanId:
        """Record host work that ran beside the span stack and is over; it lies under the root (guide 4).

        ``start_ns`` comes from :meth:`host_timestamp_ns`; the interval is positive and ends no later than now.
        ``thread_id`` None: not recorded.
        """
        label, found = text(name, "name"), member(SpanKind, kind, "kind")
        start, duration = count(start_ns, "start_ns"), positive(duration_ns, "duration_ns")
        thread = optional_count(thread_id, "thread_id")
        if end_of(start, duration, "duration_ns") > self.elapsed_ns():
            raise ContractError("the interval ends after now", position="duration_ns", code="after_now")
        self._tell_of_fault()
        with self._writer.lock:
            self._require_open()
            span_id = self._started(self.root_id, label, start, found, thread)
            self._row("spans_end", (span_id, duration))
        return span_id

    @property
    def current_span_id(self) -> SpanId:
        """Identity of the innermost open span of this thread or task; the root when it has none."""
        guard = enclosing(self._innermost.get(), self._thread.id, running_task())
        return self.root_id if guard is None else guard.id

    def _begin(
        self,
        name: str,
        kind: SpanKind,
        *,
        measured: bool = False,
        step: ExecutionStep | None = None,
        parent: SpanId | None = None,
    ) -> SpanGuard:
        label, found = text(name, "name"), member(SpanKind, kind, "kind")
        thread = self._thread.id
        task = running_task() if "asyncio.tasks" in _MODULES else None
        writer = self._writer
        if writer.fault is not None:
            self._tell_of_fault()
        with writer.lock:
            if not self._accepting:
                self._require_open()
            outer = self._innermost.get()
            if outer is not None:
                outer = enclosing(outer, thread, task)
            above = outer if parent is None else self._opened(parent)
            parent_id = self.root_id if above is None else above.id
            # One reading for the guard and for the record: a child never starts before its parent.
            start = self.elapsed_ns()
            span_id = self._numbered()
            # Listed as open before its row is there: an interrupt in between may not leave a span that nobody ends.
            guard = self._open_spans[span_id] = SpanGuard(self, span_id, label, start, above, outer, thread, task)
            row = (next(self._seq), span_id, parent_id, label, start, found, measured, step, thread)
            writer.put("spans_start", row)
            if self._observed is not None:
                self._observed.append(row)
            self._innermost.set(guard)
        return guard

    def observe_spans(self) -> list[tuple[Any, ...]]:
        """From now until :meth:`ignore_spans`, every row of a started span, and (id, duration) of every ended one.

        Spans that are open already come first. For automatic capture, which puts what it saw under these spans, once a
        session: :class:`ContractError` the second time.
        """
        with self._writer.lock:
            if self._was_observed:
                raise ContractError(
                    "this session holds an automatic capture already",
                    position="record_torch",
                    code="captured_before",
                    remedy="open a session for each; what was live before would be counted twice",
                )
            self._was_observed = True
            self._observed = [
                (None, guard.id, None, guard.name, guard.start_ns, None, None, None, guard._thread)
                for guard in self._open_spans.values()
            ]
            return self._observed

    def ignore_spans(self) -> None:
        """End what :meth:`observe_spans` began."""
        self._observed = None

    def reserve_seq(self, rows: int) -> int:
        """The first of so many numbers that no other row gets."""
        with self._writer.lock:
            first = next(self._seq)
            self._seq = itertools.count(first + rows)
        return first

    def put_rows(self, family: str, flat: list[Any]) -> None:
        """Buffer whole rows, with their reserved numbers, that lie one after another in ``flat``; values unchecked."""
        with self._writer.lock:
            self._require_open()
            self._writer.put_block(family, flat)
        if self._writer.fault is not None:
            self._tell_of_fault()

    def _opened(self, parent: SpanId) -> SpanGuard | None:
        """The guard of an open span; None is the root."""
        if self._span(parent) == self.root_id:
            return None
        guard = self._open_spans.get(parent)
        if guard is None:
            raise ContractError(f"span {parent} is not open", position="parent", code="parent_not_open")
        return guard

    def open_below(self, guard: SpanGuard) -> str:
        """The open spans that were begun under the guard, in words."""
        return listed(inner for inner in self._open_spans.values() if inner._parent is guard)

    def _started(
        self,
        parent_id: SpanId | None,
        name: str,
        start_ns: int,
        kind: SpanKind,
        thread_id: int | None = None,
    ) -> SpanId:
        """Number a span and buffer its start; the caller holds the lock."""
        span_id = self._numbered()
        self._row("spans_start", (span_id, parent_id, name, start_ns, kind, False, None, thread_id))
        return span_id

    def _numbered(self) -> SpanId:
        span_id = SpanId(f"s{next(self._span_numbers)}")
        span_id.owner = self._writer
        return span_id

    def end_span(self, guard: SpanGuard) -> None:
        """End a guard's span; what :meth:`SpanGuard.close` calls."""
        with self._writer.lock:
            if not guard.is_open or not self._accepting:
                return  # A span that is open when its session ends as failed stays open.
            duration = guard.leave(self._innermost)
            del self._open_spans[guard.id]
            self._row("spans_end", (guard.id, duration))
            if self._observed is not None:
                self._observed.append((guard.id, duration))
        if self._writer.fault is not None:
            self._tell_of_fault()


def listed(guards: Iterable[SpanGuard]) -> str:
    """Ids and names of spans, cut to what a message can bear."""
    found = [f"{guard.id} ({shown(guard.name)})" for guard in guards]
    return ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
