"""The host clock and the span stacks of a session (protocol 14.3, guide 3 and 4)."""

from __future__ import annotations

import itertools
import time
from typing import Any

from .errors import ContractError
from .shards import ShardWriter
from .sink import RecordSink
from .spans import SpanGuard, SpanId, SpanThread
from .values import count, end_of, member, optional_count, positive, text
from .vocabulary import ExecutionStep, SpanKind


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
        self._threads = SpanThread()
        self._open_spans: dict[str, SpanGuard] = {}

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
        """Begin a span under this thread's innermost open span, or under ``parent``, an open span of any thread."""
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
            span_id = self._started(self.root_id, label, start, found, thread_id=thread)
            self._row("spans_end", (span_id, duration))
        return span_id

    @property
    def current_span_id(self) -> SpanId:
        """Identity of this thread's innermost open span; the root when it has none."""
        stack = self._threads.stack
        return stack[-1].id if stack else self.root_id

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
        threads = self._threads
        writer = self._writer
        if writer.fault is not None:
            self._tell_of_fault()
        with writer.lock:
            if not self._accepting:
                self._require_open()
            above = self._enclosing(parent, threads.stack)
            parent_id = self.root_id if above is None else above.id
            # One reading for the guard and for the record: a child never starts before its parent.
            start = self.elapsed_ns()
            span_id = self._started(parent_id, label, start, found, measured, step, threads.thread_id)
            guard = self._open_spans[span_id] = SpanGuard(self, span_id, start, above, threads.stack)
        return guard

    def _enclosing(self, parent: SpanId | None, stack: list[SpanGuard]) -> SpanGuard | None:
        """The guard that a new span lies under; None is the root."""
        if parent is None:
            return stack[-1] if stack else None
        if self._span(parent) == self.root_id:
            return None
        guard = self._open_spans.get(parent)
        if guard is None:
            raise ContractError(f"span {parent} is not open", position="parent", code="parent_not_open")
        return guard

    def _started(
        self,
        parent_id: SpanId | None,
        name: str,
        start_ns: int,
        kind: SpanKind,
        measured: bool = False,
        step: ExecutionStep | None = None,
        thread_id: int | None = None,
    ) -> SpanId:
        """Number a span and buffer its start; the caller holds the lock."""
        span_id = SpanId(f"s{next(self._span_numbers)}", self._writer)
        self._row("spans_start", (span_id, parent_id, name, start_ns, kind, measured, step, thread_id))
        return span_id

    def end_span(self, guard: SpanGuard) -> None:
        """End a guard's span; what :meth:`SpanGuard.close` calls."""
        with self._writer.lock:
            if not guard.is_open or not self._accepting:
                return  # A span that is open when its session ends as failed stays open.
            duration = guard.leave()
            del self._open_spans[guard.id]
            self._row("spans_end", (guard.id, duration))
        if self._writer.fault is not None:
            self._tell_of_fault()
