"""Bytes of a trace -> typed records with their physical lines, strictly (protocol 1.1, decisions "Numbers")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from . import strict_json
from .lines import WHITE_SPACE, Block
from .strict_json import BadRecord
from .trace_events import DECODER, FLOAT_FIELDS, Record

Fault = tuple[int, BadRecord]
"""A physical line and what is wrong with it."""


@dataclass(frozen=True)
class Decoded:
    """The records of one block up to the first line that does not decode, and the fault of that line."""

    records: list[Record]
    lines: Sequence[int]
    failure: Fault | None = None


def decode_block(block: Block) -> Decoded:
    """Decode every line of a block.

    Records written one a line by a plain writer are decoded in one call; anything else, faults included, is gone
    through line by line.
    """
    if _one_object_a_line(block):
        try:
            records = DECODER.decode_lines(block.data)
        except (msgspec.MsgspecError, RecursionError):
            pass  # The slow way finds the line.
        else:
            if len(records) == block.line_count:
                return Decoded(records, range(block.first_line, block.first_line + len(records)))
    return _decode_slowly(block)


def _one_object_a_line(block: Block) -> bool:
    """True when each line begins an object and ends one, in valid UTF-8 and without ``-0``.

    After a line's last ``}`` a record that went on would need ``,``, ``]`` or ``}`` at the start of the next line, so
    where every line begins with ``{`` no record spans lines. That no line holds two, the number of records shows.
    """
    body = block.data.removesuffix(b"\n")
    if not (body.startswith(b"{") and body.endswith(b"}") and body.count(b"}\n{") == block.line_count - 1):
        return False
    return is_plain_text(body)


def is_plain_text(data: bytes) -> bool:
    """True for valid UTF-8 in which no ``-0`` stands for a number."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
    return not strict_json.has_negative_zero(data)


def _decode_slowly(block: Block) -> Decoded:
    records: list[Record] = []
    lines: list[int] = []
    for line, raw in enumerate(block.data.split(b"\n"), block.first_line):
        try:
            text = _text(raw)
            if text:
                records.append(_decode_line(text))
                lines.append(line)
        except BadRecord as fault:
            return Decoded(records, lines, (line, fault))
    return Decoded(records, lines)


def _text(raw: bytes) -> str:
    try:
        return raw.decode().strip(WHITE_SPACE)
    except UnicodeDecodeError as error:
        raise BadRecord("invalid_utf8", None, f"is no UTF-8 text at byte {error.start} of the line") from None


def _decode_line(text: str) -> Record:
    try:
        record = DECODER.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise strict_json.explain(text, error) from None
    if strict_json.has_negative_zero(text.encode()):
        spelled = strict_json.check_negative_zero(strict_json.parse(text), record.__struct_fields__, FLOAT_FIELDS)
        for name in spelled:
            setattr(record, name, -0.0)
    return record


def decode_strictly(raw: bytes) -> Record:
    """One line under every rule of a line; raises BadRecord."""
    text = _text(raw)
    record = _decode_line(text)
    strict_json.check_line(text)
    return record


def check_lines(block: Block, decoded: Decoded) -> Fault | None:
    """The first decoded line that repeats a key or holds an unrepresentable number."""
    raw = block.data.split(b"\n")
    for line, text in _numbered(raw, block.first_line, decoded.lines):
        try:
            strict_json.check_line(text)
        except BadRecord as fault:
            return line, fault
    return None


def _numbered(raw: list[bytes], first: int, lines: Sequence[int]) -> Iterator[tuple[int, str]]:
    for line in lines:
        yield line, _text(raw[line - first])
