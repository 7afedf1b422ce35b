"""What the recording calls stand on: where a row goes, which span it names, when it happened."""

from __future__ import annotations

import itertools
from typing import Any

from .errors import ContractError
from .spans import SpanId
from .values import count, end_of


class RecordSink:
    """Base of the recording calls; :class:`~planewise.recorder.session.TraceSession` puts the rows somewhere.

    Every call raises :class:`ContractError` for a value that no reader could accept. A fault of the disk is no business
    of theirs: it makes ``flush`` and ``finish`` fail, and raises here only in strict mode.
    """

    def __init__(self) -> None:
        self._gradient_numbers = itertools.count(1)
        self._engine_numbers = itertools.count(1)

    def elapsed_ns(self) -> int:
        """Nanoseconds on the host clock since the session opened."""
        raise NotImplementedError

    def _put(self, family: str, values: tuple[Any, ...], extra_bytes: int = 0) -> None:
        raise NotImplementedError

    def _span(self, span_id: SpanId) -> str:
        raise NotImplementedError

    def _instant(self, timestamp_ns: int | None) -> int:
        """An instant on the host clock; None is now."""
        now = self.elapsed_ns()
        if timestamp_ns is None:
            return now
        instant = count(timestamp_ns, "timestamp_ns")
        past(instant, now, "timestamp_ns")
        return instant

    def _start(self, timestamp_ns: int | None, duration: int) -> int:
        now = self.elapsed_ns()
        if timestamp_ns:
            start = count(timestamp_ns, "timestamp_ns")
            past(end_of(start, duration, "duration_ns"), now, "duration_ns")
            return start
        if duration > now:
            raise ContractError(
                f"{duration} ns ago is before the session opened", position="duration_ns", code="before_session"
            )
        return now - duration


def past(instant: int, now: int, name: str) -> None:
    """Refuse an instant after now: it would lie after the terminal record (protocol 1.3, rule 13)."""
    if instant > now:
        raise ContractError(f"{instant} ns lies after now ({now} ns)", position=name, code="after_now")
