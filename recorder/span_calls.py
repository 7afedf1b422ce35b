"""The host clock and the span stacks of a session (protocol 14.3, guide 3 and 4)."""

from __future__ import annotations

import itertools
import time
from contextlib import AbstractContextManager
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
        self._seq = itertools.count()
        self._span_numbers = itertools.count(1)
        self._threads = SpanThread()
        self._open_spans: dict[str, SpanGuard] = {}

    @property
    def is_open(self) -> bool:
        """True until the session has ended."""
        raise NotImplementedError

    def _recording(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _tell_of_fault(self) -> None:
        raise NotImplementedError

    def _start_clock(self) -> None:
        self._origin = time.perf_counter_ns()

    def _row(self, family: str, values: tuple[Any, ...]) -> None:
        """Buffer a row; the caller holds the lock."""
        self._writer.put(family, (next(self._seq), *values))

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
        with self._recording():
            span_id = self._started(label, found, start, parent_id=self.root_id, thread_id=thread)
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
        with self._recording():
            above = self._enclosing(parent, threads.stack)
            start = (
                self.elapsed_ns()
            )  # One reading for the guard and the record: a child never starts before its parent.
            span_id = self._started(
                label,
                found,
                start,
                parent_id=self.root_id if above is None else above.id,
                measured=measured,
                step=step,
                thread_id=threads.thread_id,
            )
            guard = SpanGuard(span_id, start, above, threads.stack, self.elapsed_ns, self._end_span)
            self._open_spans[span_id] = guard
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
        name: str,
        kind: SpanKind,
        start_ns: int,
        *,
        parent_id: SpanId | None,
        measured: bool = False,
        step: ExecutionStep | None = None,
        thread_id: int | None = None,
    ) -> SpanId:
        with self._writer.lock:
            span_id = SpanId(f"s{next(self._span_numbers)}", self._writer)
            tag = None if step is None else step.value
            self._row("spans_start", (span_id, parent_id, name, start_ns, kind.value, measured, tag, thread_id))
        return span_id

    def _end_span(self, guard: SpanGuard) -> None:
        with self._writer.lock:
            if not guard.is_open or not self.is_open:
                return  # A span that is open when its session ends as failed stays open.
            duration = guard.leave()
            del self._open_spans[guard.id]
            self._row("spans_end", (guard.id, duration))
        self._tell_of_fault()
