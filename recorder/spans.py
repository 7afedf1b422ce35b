"""Spans in the making: their ids, and the guards that end them."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Protocol

from .errors import ContractError


class SpanId(str):
    """Opaque identity of a span, as its guard gives it; records name it. It belongs to one session."""

    __slots__ = ("owner",)
    owner: object

    def __new__(cls, value: str, owner: object) -> SpanId:
        made = str.__new__(cls, value)
        made.owner = owner
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)  # Outside its session an id is but a text.


class SpanThread(threading.local):
    """The open spans of each thread, innermost last, and the thread's native id."""

    def __init__(self) -> None:
        self.stack: list[SpanGuard] = []
        self.thread_id = threading.get_native_id()


class SpanOwner(Protocol):
    """What a guard needs of its session."""

    def elapsed_ns(self) -> int:
        """Nanoseconds since the session opened."""

    def end_span(self, guard: SpanGuard) -> None:
        """Write the guard's end."""


class SpanGuard:
    """An open span; leaving its ``with`` block, or :meth:`close`, ends it.

    Guards nest: a guard is closed after every span that was begun inside it, on its own thread or on another.
    """

    __slots__ = ("_children", "_owner", "_parent", "_stack", "duration_ns", "id", "start_ns")

    def __init__(
        self,
        owner: SpanOwner,
        span_id: SpanId,
        start_ns: int,
        parent: SpanGuard | None,
        stack: list[SpanGuard],
    ) -> None:
        self.id = span_id
        """Opaque identity that recording calls take."""
        self.start_ns = start_ns
        """Start on the session's host clock."""
        self.duration_ns: int | None = None
        """Wall duration in nanoseconds; None while the span is open."""
        self._parent = parent
        self._stack = stack
        self._owner = owner
        self._children = 0
        stack.append(self)
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

        Raises :class:`ContractError` when a span begun inside it is still open; nothing is written then and the span
        stays open (protocol 14.3).
        """
        self._owner.end_span(self)

    def leave(self) -> int:
        """Take the guard off its stack, then read its duration; the session calls this under its lock.

        In this order, because a weakref callback in between records against the innermost open span.
        """
        if self._children or self._stack[-1] is not self:
            raise ContractError(
                "a span begun inside it is still open",
                source=f"span {self.id}",
                code="span_not_innermost",
                remedy="close the inner guards first",
            )
        self._stack.pop()
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
