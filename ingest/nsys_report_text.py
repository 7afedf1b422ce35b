"""The text of ``nsys stats``: banners, notices, and the CSV tables between them, one record after another."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .nsys_report_columns import Header, header_of
from .streams import StreamDamaged, chunks, head

LONGEST_RECORD = 1 << 20
"""Characters of one record; an opened quote that is not closed within them costs its first line alone."""
_LINES_OF_A_RECORD = 64
_HEAD = 1 << 14
_OPENING_LINES = 40

_BANNER = (
    re.compile(r"Processing \[(?P<database>.*?)\] with \[(?:.*[/\\])?(?P<report>\w+?)(?:\.py)?(?::[^\]]*)?\]"),
    re.compile(r"\s*\*\* .*\((?P<report>\w+)\):\s*"),
    re.compile(r"\[\d+/\d+\] Executing '(?P<report>\w+)' stats report"),
)
_SKIPPED = re.compile(r"SKIPPED: (.*)")
_NOTICE = re.compile(
    r"(NOTICE|WARNING|ERROR|INFO)\b|Generating (SQLite|')|Using .* for SQL queries|Running \[|Exporting |Exported |"
    r"\[\d+/\d+\] \[|Processing \d+ events|Saved report|\s{4,}(It is assumed|Consider using)"
)


@dataclass(frozen=True)
class Piece:
    """One record of the text.

    ``kind`` is ``banner``, ``skipped``, ``notice``, ``header``, ``row``, ``broken``, ``text`` or ``damage`` (why the
    text ends early; no record). Of a banner, ``text``
    names the report and ``database`` what it was made of. Of a row, ``cells`` are its cells.
    """

    kind: str
    line: int
    text: str = ""
    database: str = ""
    cells: tuple[str, ...] = ()
    header: Header | None = None


class ReportText:
    """Reads the text of a file. ``report`` is the name of its report where no banner gives one."""

    def __init__(self, path: Path, report: str | None = None) -> None:
        self._damage: str | None = None
        self._path = path
        self._report = report
        self._pending: list[tuple[int, str]] = []
        self._lines: Iterator[tuple[int, str]] = iter(())

    def pieces(self) -> Iterator[Piece]:
        """Every record, in order; blank lines are none. May raise ``OSError``."""
        self._lines = self._numbered()
        header: Header | None = None
        fresh, report = True, self._report
        while (found := self._next()) is not None:
            number, line = found
            if not line.strip():
                fresh = True
                continue
            if (piece := _spoken(number, line)) is not None:
                fresh = True
                if piece.kind == "banner":
                    header, report = None, piece.text
                yield piece
                continue
            cells = self._record(number, line)
            if fresh and cells is not None and (new := header_of(cells, report)) is not None:
                header = new
                yield Piece("header", number, header=new)
            else:
                yield _of_table(number, line, cells, header)
            fresh = False
        if self._damage is not None:
            yield Piece("damage", 0, self._damage)

    def _next(self) -> tuple[int, str] | None:
        return self._pending.pop() if self._pending else next(self._lines, None)

    def _record(self, number: int, line: str) -> tuple[str, ...] | None:
        """The cells of the record that begins with a line; None when it is no CSV."""
        if '"' not in line:
            return tuple(line.split(","))
        taken, quotes, length = [line], line.count('"'), len(line)
        first = number
        while quotes % 2:
            found = self._next()
            if found is None or len(taken) >= _LINES_OF_A_RECORD or length > LONGEST_RECORD:
                rest = list(enumerate(taken[1:], first + 1))
                self._pending += reversed(rest if found is None else [*rest, found])
                return None
            taken.append(found[1])
            quotes += found[1].count('"')
            length += len(found[1])
        try:
            return tuple(next(csv.reader(["\n".join(taken)], strict=True), ()))
        except csv.Error:
            self._pending += reversed(list(enumerate(taken[1:], first + 1)))
            return None

    def _numbered(self) -> Iterator[tuple[int, str]]:
        """Lines without their ends; bytes that are no UTF-8 become U+FFFD, and damage ends the text."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        rest, number = "", 1
        try:
            for piece in chunks(self._path):
                *lines, rest = (rest + decoder.decode(piece)).replace("\0", "\ufffd").split("\n")
                for line in lines:
                    yield number, line.removesuffix("\r")
                    number += 1
                if len(rest) > LONGEST_RECORD:
                    self._damage = f"no line ends within {len(rest)} characters of line {number}"
                    return
        except StreamDamaged as error:
            self._damage = error.message
        if rest:
            yield number, rest.removesuffix("\r")


def _spoken(number: int, line: str) -> Piece | None:
    """What a line says that is no part of a table."""
    if line[:1] == '"' or line[:1].isdigit():
        return None
    for pattern in _BANNER:
        if found := pattern.match(line):
            return Piece("banner", number, found["report"], found.groupdict().get("database") or "")
    if skipped := _SKIPPED.match(line):
        return Piece("skipped", number, skipped[1])
    return Piece("notice", number, line.strip()) if _NOTICE.match(line) else None


def _of_table(number: int, line: str, cells: tuple[str, ...] | None, header: Header | None) -> Piece:
    if header is None:
        return Piece("text", number, line.strip())
    if cells is None:
        return Piece("broken", number, "a quote is opened and not closed, or text follows a closed one")
    return Piece("row", number, cells=cells)


def starts_report(path: Path) -> bool:
    """True for a file that opens with a banner of nsys stats or with a header that this module knows."""
    text = head(path, _HEAD).decode("utf-8-sig", "replace")
    if "\0" in text or text[:1] in "{[<":
        return False
    for number, line in enumerate(text.split("\n")[:_OPENING_LINES]):
        piece = _spoken(number, line.rstrip("\r"))
        if piece is not None and piece.kind in ("banner", "skipped"):
            return True
        if piece is None and line.strip():
            return _opens_table(line)
    return False


def _opens_table(line: str) -> bool:
    try:
        return header_of(next(csv.reader([line.rstrip("\r")], strict=True), [])) is not None
    except csv.Error:
        return False
