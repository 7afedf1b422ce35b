"""Events out of a damaged or unusual stretch of the array: what can be read is, what cannot costs one event each.

The usual layout is cut and decoded in one call elsewhere. Where that fails, the stretch is cut at everything that looks
like the end of one event and the start of the next, halves are decoded until single pieces are left, and a piece that
does not decode alone is gone through value by value with strings and brackets tracked.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .kineto_events import FAULTS, PHASE, Lost, decode_events

BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|id|args|attr|dur|s|bp|sf)"\s*:)')
"""The end of one event and what lies before the next: event keys tell them from objects inside arguments."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]"]', re.DOTALL)
_PRIMITIVE = re.compile(rb"[^\s,{}\[\]\"]+")
_GAP = re.compile(rb"[\s,]*")
_OPENING = re.compile(rb',\s*(?=\{\s*"(?:ph|name)"\s*:)')
"""The start of an event after one that was never closed."""
_WEAK_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_ARRAY_END = re.compile(rb'\}\s*\](?=\s*(?:,\s*"|\}\s*\Z|\Z))')
_NOT_A_NUMBER = re.compile(rb"(?<=[:\[,\s])(?:NaN|-?Infinity)(?=\s*[,\]}])")
_CLOSING = {b"{": b"}", b"[": b"]"}
MAX_EVENT_BYTES = 1 << 22
_SHORT_EVENT_BYTES = 1 << 12
"""How far the end of an event is looked for once damaged ones have cost as many bytes as the stretch has: where
everything is damaged, looking far behind each would take a time that grows with the square of the bytes."""
_MAX_DAMAGES = 10_000
_MAX_DEPTH = 500
_PIECES_AHEAD = 8


@dataclass(frozen=True)
class Damage:
    """One thing the reader had to note: where (offset in the stretch), its code, severity and a sentence."""

    offset: int
    code: str
    severity: str
    message: str


@dataclass
class Recovered:
    """The events of a stretch in order, a :class:`Lost` in the place of each that could not be read.

    ``consumed`` bytes of the stretch are done with; ``ended`` says that the array's closing bracket was the last.
    ``repaired`` maps an event's index to the reason of its repair. ``bodies`` is the bytes of exactly these events, as
    pieces of one array; a lost one has none of its own there.
    """

    events: list[Any] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    repaired: dict[int, str] = field(default_factory=dict)
    bodies: list[Any] = field(default_factory=list)
    consumed: int = 0
    ended: bool = False


def recover(data: bytes, *, last: bool) -> Recovered:
    """Read a stretch that starts at an event; ``last`` when nothing follows it, so that a cut event is lost."""
    return _Recovery(data, last).run()


class _Ahead:
    """Finds a pattern from growing positions on, in time that grows with the bytes and not with the searches."""

    def __init__(self, pattern: re.Pattern[bytes], data: bytes) -> None:
        self._pattern = pattern
        self._data = data
        self._searched_from: int | None = None
        self._found: re.Match[bytes] | None = None

    def search(self, at: int) -> re.Match[bytes] | None:
        passed = self._found is not None and self._found.start() < at
        if self._searched_from is None or at < self._searched_from or passed:
            self._searched_from, self._found = at, self._pattern.search(self._data, at)
        return self._found


class _Recovery:
    def __init__(self, data: bytes, last: bool) -> None:
        matches = list(BOUNDARY.finditer(data))
        self.data = data
        self.last = last
        self.starts = [0, *(match.end() for match in matches)]
        self.ends = [*(match.start() + 1 for match in matches), len(data)]
        self.found = Recovered()
        self.stopped = False
        self.gap = _GAP.match(data, 0).end()  # type: ignore[union-attr]
        self.openings = _Ahead(_OPENING, data)
        self.weak_boundaries = _Ahead(_WEAK_BOUNDARY, data)
        self.array_ends = _Ahead(_ARRAY_END, data)
        self.scanned = 0

    def run(self) -> Recovered:
        self._walk(0, len(self.starts))
        if not self.stopped:
            self.found.consumed = len(self.data)
        return self.found

    def _walk(self, low: int, high: int) -> None:
        """Decode the pieces ``low`` to ``high``, as far as nothing before them has already taken them."""
        while low < high and self.starts[low] < self.found.consumed:
            low += 1
        if low >= high or self.stopped:
            return
        body = memoryview(self.data)[self.starts[low] : self.ends[high - 1]]
        try:
            events = decode_events((body,))
        except FAULTS:
            if high - low == 1:
                self._single(low)
            else:
                middle = (low + high) // 2
                self._walk(low, middle)
                self._walk(middle, high)
        else:
            self._add(events, body)
            self.found.consumed = self.ends[high - 1]

    def _single(self, piece: int) -> None:
        """Go through one piece value by value, and past its end where a value goes on there."""
        at = self._skip(self.starts[piece])
        while not self.stopped and at < self.ends[piece]:
            if self.data[at : at + 1] == b"]":
                self.found.ended, self.stopped, self.found.consumed = True, True, at + 1
                return
            at = self._value(at, piece)
            if len(self.found.damages) >= _MAX_DAMAGES:
                self._note(at, "too_damaged", "data_loss", "what follows was not read: too much before it was damaged")
                self.stopped, self.found.consumed = True, len(self.data)
        if not self.stopped:
            self.found.consumed = max(self.found.consumed, at)

    def _skip(self, at: int) -> int:
        return _GAP.match(self.data, at).end()  # type: ignore[union-attr]

    def _value(self, at: int, piece: int) -> int:
        """Read the value at ``at``; returns where to go on."""
        ahead = min(piece + _PIECES_AHEAD, len(self.ends) - 1)
        limit = self.ends[ahead] if ahead > piece else min(len(self.data), at + MAX_EVENT_BYTES)
        if self.scanned > len(self.data):
            limit = min(limit, at + _SHORT_EVENT_BYTES)
        end = _value_end(self.data, at, limit)
        if end is None and not self.last and limit == len(self.data) and limit - at < MAX_EVENT_BYTES:
            self.stopped, self.found.consumed = True, at  # It may go on in bytes not read yet.
            return at
        if end is not None and self._take(self.data[at:end], at):
            return self._skip(end)
        self.scanned += (limit if end is None else end) - at
        return self._resynchronise(at, end)

    def _take(self, text: bytes, at: int) -> bool:
        """Add the event of one balanced value; False when it is damaged."""
        try:
            self._add(decode_events((text,)), text)
            return True
        except FAULTS:
            reason = _reason(text)
        if reason is None and (mended := _NOT_A_NUMBER.sub(b"null", text)) != text:
            try:
                self._add(decode_events((mended,)), mended)
            except FAULTS:
                return False
            self.found.repaired[len(self.found.events) - 1] = "not_a_number"
            return True
        if reason is None:
            return False
        self._note(at, reason, "warning", f"an element of traceEvents is no event of a known shape ({reason})")
        self._add([Lost(reason)], b"{}")
        return True

    def _resynchronise(self, at: int, end: int | None) -> int:
        """Give up the event at ``at`` and find the next."""
        cut = end is None and self.last and bisect_right(self.starts, at) == len(self.starts)
        following = bisect_right(self.starts, at)
        bound = self.starts[following] if following < len(self.starts) else len(self.data)
        closing = self.array_ends.search(at) if cut else None
        opening = self.openings.search(at + 1) if end is None else None
        if opening and opening.end() < bound:
            to = opening.end()
        elif following < len(self.starts):
            to = bound
        elif end is not None:
            to = end
        elif weak := self.weak_boundaries.search(at):
            to = weak.end()
        else:
            to = closing.end() - 1 if closing else len(self.data)
        code = "truncated_event" if cut and to == len(self.data) else "damaged_event"
        self._note(at, code, "data_loss", f"an event of {to - at} bytes could not be read and was left out")
        self._add([Lost(code)], b"{}")
        return self._skip(to)

    def _add(self, events: list[Any], body: Any) -> None:
        if events:
            self.found.events += events
            self.found.bodies.append(body)

    def _note(self, at: int, code: str, severity: str, message: str) -> None:
        self.found.damages.append(Damage(at, code, severity, message))


def _value_end(data: bytes, at: int, limit: int) -> int | None:
    """The end of the JSON value at ``at``, with strings and brackets tracked; None when it does not end in bounds."""
    if data[at] not in b'{["':
        plain = _PRIMITIVE.match(data, at, limit)
        return plain.end() if plain else at + 1
    opened: list[bytes] = []
    for token in _TOKEN.finditer(data, at, limit):
        text = token.group()
        if text in _CLOSING and len(opened) < _MAX_DEPTH:
            opened.append(_CLOSING[text])
        elif text in _CLOSING or text == b'"' or (text in b"}]" and (not opened or opened.pop() != text)):
            return None
        if not opened:
            return token.end()
    return None


def _reason(text: bytes) -> str | None:
    """Why valid JSON is no event; None for what is no valid JSON."""
    try:
        value = msgspec.json.decode(text)
    except FAULTS:
        return None
    if not isinstance(value, dict):
        return "not_an_object"
    phase = value.get("ph")
    if phase is None:
        return "no_phase"
    return "unexpected_type" if phase in PHASE.values() else "unknown_phase"
