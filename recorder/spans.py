"""Spans in the making: their ids, the guards that end them, and who runs the code that begins them.

Every thread and every asyncio task has spans of its own: its first one lies under the root, or under a span that was
open around the whole event loop, unless ``parent`` names another. A task is not put under the span that created it,
because nothing says that it ends in time, and a child that outlives its parent makes a capture invalid (protocol 3).
"""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from .errors import ContractError
from .values import shown


class SpanId(str):
    """Opaque identity of a span, as its guard gives it; records name it. It belongs to one session."""

    __slots__ = ("owner",)
    owner: object  # Set by the session right after it is made; a __new__ of its own would cost more than the rest.

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)  # Outside its session an id is but a text.


class SpanThread(threading.local):
    """The native id of each thread."""

    def __init__(self) -> None:
        self.id = threading.get_native_id()


_MODULES = sys.modules


def running_task() -> object | None:
    """The asyncio task that runs on this thread, or the loop where it runs a plain callback; None without a loop.

    Looked up without an import: a program that never loaded asyncio runs no loop, and should not pay for loading it.
    """
    if "asyncio.tasks" not in _MODULES:
        return None
    loop: object | None = _MODULES["asyncio.events"]._get_running_loop()
    return None if loop is None else _MODULES["asyncio.tasks"].current_task(loop) or loop


class SpanOwner(Protocol):
    """What a guard needs of its session."""

    def elapsed_ns(self) -> int:
        """Nanoseconds since the session opened."""

    def end_span(self, guard: SpanGuard) -> None:
        """Write the guard's end."""

    def open_below(self, guard: SpanGuard) -> str:
        """The open spans that were begun under the guard, in words."""


class SpanGuard:
    """An open span; leaving its ``with`` block, or :meth:`close`, ends it, on any thread and in any task.

    A guard is closed after every span that lies under it. Guards that do not lie under each other may end in any order,
    so tasks and threads never stand in each other's way.

    A generator has no spans of its own: it runs in whoever asks it for a value. A span that it holds across a ``yield``
    stays the innermost one there, and what is begun meanwhile lies under it and is closed before the generator goes on
    to close it. Where that is not meant, begin the spans of the consumer and of the generator with ``parent``.
    """

    __slots__ = ("_children", "_left", "_outer", "_owner", "_parent", "_task", "_thread", "duration_ns", "id", "name",
                 "start_ns")  # fmt: skip

    def __init__(
        self,
        owner: SpanOwner,
        span_id: SpanId,
        name: str,
        start_ns: int,
        parent: SpanGuard | None,
        outer: SpanGuard | None,
        thread: int,
        task: object | None,
    ) -> None:
        self.id = span_id
        """Opaque identity that recording calls take."""
        self.name = name
        """Its semantic label."""
        self.start_ns = start_ns
        """Start on the session's host clock."""
        self.duration_ns: int | None = None
        """Wall duration in nanoseconds; None while the span is open."""
        self._parent = parent
        self._outer = outer
        self._thread = thread
        self._task = task
        self._owner = owner
        self._children = 0
        self._left = False
        if parent is not None:
            parent._children += 1

    @property
    def is_open(self) -> bool:
        """True until the span has ended."""
        return self.duration_ns is None

    def elapsed_ns(self) -> int:
        """Nanoseconds since the span began; its duration once it has ended."""
        return self._owner.elapsed_ns() - self.start_ns if self.duration_ns is None else self.duration_ns

    def close(self) -> None:
        """End the span; closing twice does nothing.

        Raises :class:`ContractError` when a span begun under it is still open; nothing is written then and the span
        stays open (protocol 14.3).
        """
        self._owner.end_span(self)

    def leave(self, innermost: Innermost) -> int:
        """Stop being the innermost span, then read the duration; the session calls this under its lock.

        In this order, because a weakref callback in between records against the innermost open span.
        """
        if self._children:
            raise ContractError(
                f"a span begun inside it is still open: {self._owner.open_below(self)}",
                source=f"span {self.id} ({shown(self.name)})",
                code="span_not_innermost",
                remedy="close the inner guards first",
            )
        self._left = True
        if innermost.get() is self:
            innermost.set(self._outer)
        self._task = None  # A guard that is kept must not keep a task and its result.
        duration = self.duration_ns = self._owner.elapsed_ns() - self.start_ns
        if self._parent is not None:
            self._parent._children -= 1
        return duration

    def __enter__(self) -> SpanGuard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ContractError:
            if kind is None:
                raise
            # The body's own exception matters more than the inner guards that it left open.

    def __repr__(self) -> str:
        state = "open" if self.is_open else f"{self.duration_ns} ns"
        return f"<SpanGuard {self.id}: {state}>"


Innermost: TypeAlias = ContextVar[SpanGuard | None]
"""The span begun last in a context. A new task starts with its creator's, which :func:`enclosing` passes over."""


def enclosing(guard: SpanGuard | None, thread: int, task: object | None) -> SpanGuard | None:
    """The innermost open span, from ``guard`` outwards, that surely lasts as long as the code of this task; else None.

    That is a span of the same task, or one begun on this thread before the event loop ran.
    """
    while guard is not None:
        if not guard._left and guard._thread == thread and (guard._task is None or guard._task is task):
            while guard._outer is not None and guard._outer._left:
                guard._outer = guard._outer._outer  # Else spans that end out of order make the chain ever longer.
            return guard
        guard = guard._outer
    return None
