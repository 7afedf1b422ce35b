"""The traceEvents array of a file in decoded chunks, and the keys around it, within bounded memory.

Offsets are of the decompressed bytes. A chunk is cut where one event ends and the next begins, found by the layout of
the first two events; the cut is believed only when the chunk decodes, and everything else is left to ``recover``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from ..recorder.errors import InputRefused
from .kineto_events import FAULTS, decode_events
from .kineto_recovery import BOUNDARY, Damage, recover
from .streams import StreamDamaged, chunks

CHUNK_BYTES = 1 << 24
_READ_BYTES = 1 << 20
_HEAD_LIMIT = 1 << 26
"""Bytes in which traceEvents has to begin, and to which the keys after it are read."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]"]', re.DOTALL)
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(-?[0-9]{1,19})\b')
_BARE = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_OBJECT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{")
_TRACE_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BOM = b"\xef\xbb\xbf"


@dataclass
class Chunk:
    """Some events in order; ``bodies`` is the bytes of exactly these, as pieces of one array."""

    first_seq: int
    events: list[Any]
    bodies: list[Any]
    repaired: dict[int, str] = field(default_factory=dict)


class EventStream:
    """One pass over a file.

    Attributes
    ----------
    metadata:
        The keys beside traceEvents; complete after the last chunk, empty for a bare array.
    bare:
        The file is an array without keys around it.
    damages:
        What could not be read, in order of their offsets.
    lost:
        Some of the file's data could not be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metadata: dict[str, Any] = {}
        self.bare = False
        self.damages: list[Damage] = []
        self._source = _Source(path)
        self._offset = 0
        self._seq = 0
        self._separator: bytes | None = None

    @property
    def lost(self) -> bool:
        """Whether data was lost so far."""
        return any(damage.severity == "data_loss" for damage in self.damages)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the events; raises :class:`InputRefused` for what is no trace at all."""
        buffer, wanted = self._head(), CHUNK_BYTES
        while True:
            buffer = self._source.more(buffer, wanted)
            cut, last = self._cut(buffer), self._source.finished
            if cut and (events := _decoded(buffer, cut[0])) is not None:
                yield self._next(events, bodies=[memoryview(buffer)[: cut[0]]])
                buffer = self._after(buffer, cut[1])
                continue
            found = recover(buffer if last or not cut else buffer[: cut[0]], last=last)
            self._note_all(found.damages)
            yield self._next(found.events, bodies=found.bodies, repaired=found.repaired)
            wanted = self._wanted(len(buffer)) if not found.consumed else CHUNK_BYTES
            buffer = self._after(buffer, found.consumed)
            if found.ended or last:
                break
        self._tail(buffer, found.ended)

    def _next(self, events: list[Any], **more: Any) -> Chunk:
        chunk = Chunk(self._seq, events, **more)
        self._seq += len(events)
        return chunk

    def _after(self, buffer: bytes, used: int) -> bytes:
        self._offset += used
        return buffer[used:]

    def _wanted(self, size: int) -> int:
        """How much to hold at once when the buffer has no whole event in it."""
        if size < _HEAD_LIMIT:
            return size + CHUNK_BYTES
        raise self._refused("event_too_long", f"holds an element of traceEvents of more than {size} bytes")

    def _cut(self, buffer: bytes) -> tuple[int, int] | None:
        """Where the last whole event ends and the next begins, by the layout of the first two."""
        if self._separator is None and (found := BOUNDARY.search(buffer)):
            start = found.start()
            while start and buffer[start - 1 : start].isspace():
                start -= 1
            self._separator = buffer[start : found.end() + 1]
        at = buffer.rfind(self._separator) if self._separator else -1
        if self._separator is None or at < 0:
            return None
        return at + self._separator.index(b"}") + 1, at + len(self._separator) - 1

    def _head(self) -> bytes:
        """Read to the start of the array; returns what of it was read by then."""
        data, size = b"", 1 << 16
        while True:
            data = self._source.more(data, size)
            if (start := _array_start(data)) is not None:
                break
            if self._source.finished or size >= _HEAD_LIMIT:
                raise self._refused("no_trace_events", "has no array traceEvents, and is no array of events")
            size *= 2
        self._offset = start
        head = data[:start].removeprefix(_BOM).strip()
        self.bare = head == b"["
        if not self.bare:
            self._keys(head[: head.rindex(b'"traceEvents"')].rstrip().removesuffix(b",") + b"}", "before", 0)
        return data[start:]

    def _tail(self, buffer: bytes, ended: bool) -> None:
        """Read the keys after the array, and say what is missing there."""
        rest = self._source.more(buffer, _HEAD_LIMIT) if ended else buffer
        for damage in self._source.damages:
            self.damages.append(damage)
        if not ended:
            self._note("array_not_closed", "data_loss", "traceEvents has no end: the file was cut off")
        elif self.bare and rest.strip(b" \t\r\n\0"):
            self._note("trailing_data", "warning", f"{len(rest)} bytes after the array were not read")
        elif not self.bare:
            self._keys(b"{" + rest.strip().removeprefix(b","), "after", self._offset)

    def _keys(self, text: bytes, where: str, offset: int) -> None:
        try:
            self.metadata |= msgspec.json.decode(text, type=dict[str, Any])
        except FAULTS:
            message = f"the keys {where} traceEvents are damaged; of them only baseTimeNanoseconds was looked for"
            self.damages.append(Damage(offset, "metadata_damaged", "data_loss", message))
            if found := _BASE.search(text):
                self.metadata.setdefault("baseTimeNanoseconds", int(found.group(1)))

    def _note_all(self, damages: list[Damage]) -> None:
        for damage in damages:
            self.damages.append(replace(damage, offset=damage.offset + self._offset))

    def _note(self, code: str, severity: str, message: str) -> None:
        self.damages.append(Damage(self._offset, code, severity, message))

    def _refused(self, code: str, message: str) -> InputRefused:
        where = f"byte {self._offset}"
        return InputRefused(message, source=self.path, position=where, code=code, remedy="check that it is a trace")


class _Source:
    """The decompressed bytes of a file, in amounts that the caller asks for.

    ``finished`` is True once the end was seen, ``damages`` says when the end was not where it should be.
    """

    def __init__(self, path: Path) -> None:
        self.finished = False
        self.damages: list[Damage] = []
        self._pieces = chunks(path, _READ_BYTES)

    def more(self, held: bytes, size: int) -> bytes:
        """``held`` and what follows it: ``size`` bytes or somewhat more, fewer at the end."""
        got, have = [held], len(held)
        try:
            while have < size and not self.finished:
                piece = next(self._pieces, b"")
                self.finished = not piece
                got.append(piece)
                have += len(piece)
        except StreamDamaged as damage:
            self.finished = True
            self.damages.append(Damage(damage.offset, "stream_damaged", "data_loss", damage.message))
        return b"".join(got) if len(got) > 1 else held


def _decoded(buffer: bytes, end: int) -> list[Any] | None:
    """The events before ``end``; None when those bytes are not exactly a row of events."""
    try:
        return decode_events((memoryview(buffer)[:end],))
    except FAULTS:
        return None


def _array_start(data: bytes) -> int | None:
    """Where the first element of the events is looked for; None when no array of events begins in ``data``."""
    if opened := _BARE.match(data):
        return opened.end()
    found = list(_TRACE_EVENTS.finditer(data)) if _OBJECT.match(data) else []
    for candidate in found:
        if _depth(data, candidate.start()) == 1:
            return candidate.end()
    return found[0].end() if found else None


def _depth(data: bytes, end: int) -> int:
    """How many brackets are open at ``end``; -1 inside a string."""
    depth, at = 0, 0
    for token in _TOKEN.finditer(data, 0, end):
        text = token.group()
        depth += (text in b"{[") - (text in b"}]") if text != b'"' else 0
        at = -1 if text == b'"' else depth
    return at
