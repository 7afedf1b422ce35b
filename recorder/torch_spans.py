"""Finds the span of a session that a moment of the profiler lies in."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

_NEVER = 2**63


@dataclass(slots=True)
class SeenSpan:
    """A span that was open during a region: its id, its host times, and the step it or a span around it names."""

    id: str
    start_ns: int
    end_ns: int
    step: str | None


class SessionSpans:
    """The spans of one thread, as :meth:`~planewise.recorder.session.TraceSession.observe_spans` saw them."""

    def __init__(self, observed: list[tuple[Any, ...]], thread_id: int, root_id: str) -> None:
        spans: dict[str, SeenSpan] = {}
        for row in observed:
            if len(row) == 2:
                if row[0] in spans:
                    spans[row[0]].end_ns = spans[row[0]].start_ns + row[1]
            elif row[8] == thread_id:
                above = spans.get(row[2])
                step = row[7] if row[7] or above is None else above.step
                spans[row[1]] = SeenSpan(row[1], row[4], _NEVER, step)
        self._root = SeenSpan(root_id, 0, _NEVER, None)
        self._build(sorted(spans.values(), key=lambda span: (span.start_ns, -span.end_ns)))

    def _build(self, spans: list[SeenSpan]) -> None:
        """The innermost span from each of some moments on."""
        self._moments: list[int] = [-1]
        self._innermost: list[SeenSpan] = [self._root]
        opened = [self._root]
        for span in [*spans, SeenSpan("", _NEVER, _NEVER, None)]:
            while opened[-1].end_ns <= span.start_ns and len(opened) > 1:
                end = opened.pop().end_ns
                self._add(end, opened[-1])
            opened.append(span)
            self._add(span.start_ns, span)

    def _add(self, moment: int, span: SeenSpan) -> None:
        if moment == self._moments[-1]:
            self._innermost[-1] = span
        else:
            self._moments.append(moment)
            self._innermost.append(span)

    def at(self, host_ns: int) -> SeenSpan:
        """The innermost span open at a moment; the root when there is none."""
        return self._innermost[bisect_right(self._moments, host_ns) - 1]
