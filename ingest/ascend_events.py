"""The events of an Ascend ``trace_view.json``: one array of Chrome events, read in pieces within bounded memory.

A piece is cut where one event ends and the next begins. What does not decode there is halved until single events are
left, so that damage costs the events it is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from .streams import StreamDamaged, chunks

Scalar = int | str | float | bool | None
FAULTS = (msgspec.MsgspecError, ValueError, RecursionError)
"""What decoding raises for bytes that are no events."""

NO_RECORD = ("array_not_closed", "damaged_stream", "event_too_long")
"""Codes of what is lost of the file as a whole, rather than of one event."""

_CHUNK_BYTES = 1 << 22
_LONGEST_EVENT = 1 << 25
#: Bytes without the end of an event after which the rest is given up; bounds memory, whatever a file inflates to.
_PIECES_JOINED = 8
_OVERLAP = 1 << 16
_CUT = re.compile(rb'\}\s*+,\s*+(?=\{\s*+"(?:ph|name|cat|pid|tid|ts|id|args|dur|s|bp)"\s*:)')
_OPEN = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*")
_ABSENT = Raw()


class Event(Struct, gc=False):
    """One Chrome event; ``ts`` and ``dur`` are decimal microseconds, as numbers or strings."""

    ph: str = ""
    name: str | None = None
    cat: str | None = None
    pid: Scalar = None
    tid: Scalar = None
    id: Scalar = None
    ts: Raw = _ABSENT
    dur: Raw = _ABSENT
    args: Raw = _ABSENT


@dataclass(frozen=True)
class Lost:
    """An event, or what was left of the file, that could not be read."""

    offset: int
    code: str
    message: str


_decode = msgspec.json.Decoder(list[Event]).decode


def read_events(path: Path) -> Iterator[Event | Lost]:
    """Every event in order, a :class:`Lost` in the place of each that could not be read. Raises ``OSError``."""
    buffer, offset, damage = b"", 0, None
    pieces = chunks(path, _CHUNK_BYTES)
    started = False
    while True:
        try:
            piece = next(pieces, b"")
        except StreamDamaged as error:
            piece, damage = b"", error
        buffer += piece
        if not started and (opened := _OPEN.match(buffer)):
            buffer, offset, started = buffer[opened.end() :], opened.end(), True
        cut = _last_cut(buffer, len(piece))
        if cut is not None:
            yield from _events(buffer[: cut.start() + 1], offset)
            offset += cut.end()
            buffer = buffer[cut.end() :]
        if not piece:
            break
        if len(buffer) > _LONGEST_EVENT:
            message = f"no event ends within {len(buffer)} bytes; what follows was not read"
            yield Lost(offset, "event_too_long", message)
            return
    yield from _last(buffer, offset, damage)


def _last_cut(buffer: bytes, new: int) -> re.Match[bytes] | None:
    """The last place where one event ends and the next begins; only the ``new`` bytes were not searched before."""
    for back in (_OVERLAP, new + _OVERLAP):
        cut = None
        for cut in _CUT.finditer(buffer, max(0, len(buffer) - back)):  # noqa: B007 - only the last one is wanted.
            pass
        if cut is not None:
            return cut
    return None


def _last(buffer: bytes, offset: int, damage: StreamDamaged | None) -> Iterator[Event | Lost]:
    """What follows the last cut: one event and the closing bracket."""
    rest = buffer.rstrip(b" \t\r\n\0")
    if rest.endswith(b"]"):
        yield from _events(rest[:-1].rstrip().removesuffix(b","), offset)
        return
    if damage:
        yield Lost(damage.offset, "damaged_stream", damage.message)
    else:
        yield Lost(offset, "array_not_closed", "the array of events has no end: the file was cut off")
    yield from _events(rest.removesuffix(b","), offset)


def _events(data: bytes, offset: int) -> Iterator[Event | Lost]:
    """The events of a stretch; the whole stretch in one call where it is sound."""
    if not data.strip():
        return
    try:
        yield from _decode(b"[" + data + b"]")
    except FAULTS:
        starts = [0, *(cut.end() for cut in _CUT.finditer(data))]
        ends = [*(cut.start() + 1 for cut in _CUT.finditer(data)), len(data)]
        yield from _recovered(data, offset, starts, ends)


def _recovered(data: bytes, offset: int, starts: list[int], ends: list[int]) -> Iterator[Event | Lost]:
    """The events of a damaged stretch: halves are tried until single pieces are left."""
    waiting = [(0, len(starts))]
    taken = 0
    while waiting:
        low, high = waiting.pop()
        low = max(low, taken)
        if low >= high:
            continue
        try:
            yield from _decode(b"[" + data[starts[low] : ends[high - 1]] + b"]")
        except FAULTS as error:
            if high - low > 1:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]
                continue
            # A piece may be the begin of an event that holds objects which look like events.
            for last in range(low + 1, min(low + _PIECES_JOINED, len(starts))):
                try:
                    event = _decode(b"[" + data[starts[low] : ends[last]] + b"]")
                except FAULTS:
                    continue
                yield from event
                high = last + 1
                break
            else:
                size = ends[low] - starts[low]
                message = f"an event of {size} bytes could not be read and was left out: {str(error)[:120]}"
                yield Lost(offset + starts[low], "damaged_event", message)
        taken = high
