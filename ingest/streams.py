"""Bytes of a source, decompressed on the way: plain, gzip or zstd, told apart by their first bytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

CHUNK_BYTES = 1 << 20
"""Size of one read and, at most, of one piece of what is inflated from it."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class StreamDamaged(Exception):
    """The compressed stream ends early or is corrupt; everything before the damage was yielded.

    ``offset`` is the number of decompressed bytes that came before it.
    """

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first ``size`` decompressed bytes, fewer where there are no more; empty for what cannot be read."""
    found = b""
    try:
        for chunk in chunks(path, 1 << 14):
            found += chunk
            if len(found) >= size:
                break
    except (StreamDamaged, OSError):
        pass
    return found[:size]


def chunks(path: Path, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file in pieces. Raises :class:`StreamDamaged` at damage, and ``OSError``."""
    with path.open("rb") as stream:
        magic = stream.read(4)
        stream.seek(0)
        if magic.startswith(_GZIP):
            yield from _inflated(iter(lambda: stream.read(size), b""))
        elif magic == _ZSTD:
            yield from _unzstd(path, size)
        else:
            yield from iter(lambda: stream.read(size), b"")


def _inflated(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Gzip members one after another. Output comes in bounded pieces, so a bomb never lies in memory whole."""
    given, open_member = 0, False
    inflate = zlib.decompressobj(wbits=31)
    for piece in pieces:
        while piece:
            try:
                found = inflate.decompress(piece, CHUNK_BYTES)
            except zlib.error as error:
                if given and not open_member and not any(piece.strip(b"\0")):
                    return  # Zero padding after the last member, as tapes and some uploaders leave.
                raise StreamDamaged(f"the gzip stream is corrupt: {error}", given) from None
            open_member = True
            if found:
                given += len(found)
                yield found
            piece = inflate.unconsumed_tail
            if inflate.eof:
                piece, inflate, open_member = inflate.unused_data, zlib.decompressobj(wbits=31), False
    if open_member:
        raise StreamDamaged("the gzip stream ends early", given)


def _unzstd(path: Path, size: int) -> Iterator[bytes]:
    given = 0
    try:
        with pa.CompressedInputStream(pa.OSFile(str(path), "rb"), "zstd") as stream:
            while piece := stream.read(size):
                given += len(piece)
                yield piece
    except (OSError, pa.ArrowException) as error:
        raise StreamDamaged(f"the zstd stream ends early or is corrupt: {error}", given) from None
