"""Reads a text file as blocks of whole lines, with physical line numbers, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, cast

from ..recorder.errors import InputRefused

BLOCK_BYTES = 1 << 23
MAX_LINE_BYTES = 1 << 28
"""A longer line is refused: a file without line ends must not be read into memory whole."""

WHITE_SPACE = (
    "\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)
"""Unicode White_Space; U+001C to U+001F are not in it (decisions, "Numbers"), though ``str.strip`` removes them."""

GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Block:
    """Whole lines: ``data`` begins with physical line ``first_line`` (from 1) and ends with a line or the file."""

    first_line: int
    data: bytes

    @cached_property
    def line_count(self) -> int:
        """Number of physical lines; the end of the last line begins no further one."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))


def is_blank(text: str) -> bool:
    """True when nothing but Unicode White_Space is in the text."""
    return not text.strip(WHITE_SPACE)


def open_bytes(path: Path) -> IO[bytes]:
    """The content of a file, decompressed when it begins as gzip does; raises OSError."""
    with path.open("rb") as stream:
        packed = stream.read(2) == GZIP_MAGIC
    return cast(IO[bytes], gzip.open(path, "rb")) if packed else path.open("rb")


def peek(path: Path, size: int) -> bytes:
    """The first bytes of the decompressed content, as many as a damaged file gives; empty when it cannot be read."""
    found = b""
    try:
        with open_bytes(path) as stream:
            while len(found) < size and (part := stream.read1(size - len(found))):  # type: ignore[attr-defined]
                found += part
    except (OSError, EOFError, zlib.error):
        pass
    return found


def text_encoding(head: bytes) -> str | None:
    """The codec of a text that begins like this, where it is not plain UTF-8: by its mark or its zero bytes."""
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    if len(head) >= 4 and head[0] and not head[1] and head[2]:
        return "utf-16-le"
    return "utf-16-be" if len(head) >= 4 and not head[0] and head[1] and not head[2] else None


_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def plain_text(head: bytes) -> bytes:
    """The first bytes of a text as plain UTF-8, so that a format is told in any encoding."""
    codec = text_encoding(head)
    return head if codec is None else head.decode(codec, errors="ignore").encode()


def check_encoding(path: Path) -> None:
    """Refuse a text that is not plain UTF-8, before every line of it is."""
    codec = text_encoding(peek(path, 4))
    if codec is None:
        return
    if codec == "utf-8-sig":
        found, code = "begins with a UTF-8 byte order mark (EF BB BF)", "byte_order_mark"
        remedy = "remove its first three bytes: tail -c +4 FILE > NEW"
    else:
        name = codec.removesuffix("-le").removesuffix("-be").upper()
        found, code = f"is {name} text", "not_utf8"
        remedy = f"convert it: iconv -f {codec.upper()} -t UTF-8 FILE > NEW"
    raise InputRefused(
        f"{found}, expected UTF-8 without a byte order mark", source=path, position="byte 0", code=code, remedy=remedy
    )


def read_blocks(path: Path, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the file in blocks of whole lines; raises :class:`InputRefused` when it cannot be read."""
    line = 1
    try:
        with open_bytes(path) as stream:
            for data in _whole_lines(stream, block_bytes):
                block = Block(line, data)
                line += block.line_count
                yield block
    except EOFError as error:
        raise _damaged(path, line, "the gzip stream is truncated: it ends before its end mark") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(path, line, f"the gzip stream is damaged: {error}") from error
    except OSError as error:
        raise InputRefused(
            f"cannot be read: {error}", source=path, position=f"line {line} or later", code="unreadable"
        ) from error
    except _LineTooLong as error:
        raise InputRefused(
            f"a line is longer than {MAX_LINE_BYTES} bytes", source=path, position=f"line {line} or later",
            code="line_too_long",
        ) from error  # fmt: skip


def _damaged(path: Path, line: int, message: str) -> InputRefused:
    remedy = "copy it again; if the original is damaged too, record the run again"
    return InputRefused(message, source=path, position=f"line {line} or later", code="damaged_stream", remedy=remedy)


class _LineTooLong(Exception):
    """A line outgrew MAX_LINE_BYTES."""


def _whole_lines(stream: IO[bytes], block_bytes: int) -> Iterator[bytes]:
    pending: list[bytes] = []
    pending_bytes = 0
    while data := stream.read(block_bytes):
        end = data.rfind(b"\n") + 1
        if end:
            yield b"".join((*pending, data[:end]))
            pending, pending_bytes = [], 0
        if end < len(data):
            pending.append(data[end:])
            pending_bytes += len(data) - end
        if pending_bytes > MAX_LINE_BYTES:
            raise _LineTooLong
    if pending:
        yield b"".join(pending)
