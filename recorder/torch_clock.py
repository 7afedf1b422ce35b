"""Puts times of the profiler on the host clock of a session, by marks that both of them see."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from torch._C._profiler import _RecordFunctionFast

from .errors import RecordingError

MARK = "planewise::clock"
"""Name of the profiler's events that are marks."""

_MARKS = 5


@dataclass(frozen=True)
class Reading:
    """``perf_counter_ns`` right before and right after a mark."""

    before_ns: int
    after_ns: int


def mark() -> list[Reading]:
    """Make some marks; the one with the shortest way around it will count."""
    readings = []
    for _ in range(_MARKS):
        before = time.perf_counter_ns()
        with _RecordFunctionFast(MARK):
            pass
        readings.append(Reading(before, time.perf_counter_ns()))
    return readings


class HostClock:
    """Both clocks tick the same host, so one line through two marks puts one on the other.

    ``uncertainty_ns`` is half the way around the wider mark: no time is placed better than that.
    """

    def __init__(self, origin_ns: int, first: Sequence[Reading], last: Sequence[Reading], seen: Sequence[int]) -> None:
        """``seen`` are the profiler's times of all marks in order; raises :class:`RecordingError` when some lack."""
        if len(seen) != len(first) + len(last):
            raise RecordingError(
                f"the profiler kept {len(seen)} of {len(first) + len(last)} marks, so its times have no place",
                code="profiler_incomplete",
                remedy="record a shorter region; its buffers are full",
            )
        begin = _best(origin_ns, first, seen[: len(first)])
        end = _best(origin_ns, last, seen[len(first) :])
        self._profiler_ns, self._host_ns, begin_gap = begin
        self._drift = (end[1] - begin[1]) / max(end[0] - begin[0], 1) - 1
        self.uncertainty_ns = max(begin_gap, end[2]) // 2

    def host_ns(self, profiler_ns: int) -> int:
        """A time of the profiler on the session's host clock; never before the session opened. Keeps every order."""
        passed = profiler_ns - self._profiler_ns
        return max(self._host_ns + passed + round(passed * self._drift), 0)


def _best(origin_ns: int, readings: Sequence[Reading], seen: Sequence[int]) -> tuple[int, int, int]:
    """(profiler's time, host time, gap) of the tightest mark."""
    gap, reading, at = min(
        ((found.after_ns - found.before_ns, found, at) for found, at in zip(readings, seen, strict=True)),
        key=lambda candidate: candidate[0],
    )
    return at, (reading.before_ns + reading.after_ns) // 2 - origin_ns, gap
