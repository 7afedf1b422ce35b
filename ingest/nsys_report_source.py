"""A file of reports while it is read: its ledger, its clock, and what its text says beside its tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .fates import Fates
from .nsys_report_table import Ranges, ReportTable
from .nsys_report_text import Piece

Pieces = Callable[[], Iterable[Piece]]
"""Reads the records of a source anew; ranges are read twice, since a row may name a parent that comes later."""


@dataclass
class Source:
    """One file of reports: its ledger, its clock, the name of the file without its ends, and how to read it.

    ``report`` is the name of its report where the file's own text does not say it. ``host_ranges`` is False where the
    ranges of projections are no new spans, since another file has the same ranges.
    """

    fates: Fates
    clock: str
    stem: str
    pieces: Pieces
    report: str | None = None
    host_ranges: bool = True
    said: Counter[str] = field(default_factory=Counter)
    """How many records of each kind of piece there were."""
    skipped: list[str] = field(default_factory=list)
    """Why reports were left out, as nsys said; the first few."""
    databases: list[str] = field(default_factory=list)
    """What the banners say the reports were made of; each has its own session, so its own clock."""
    links: set[str] = field(default_factory=set)
    """Columns that join records, as the reports spell them."""

    ranges: Ranges | None = None
    """The ranges of the whole text, once a table of ranges was met."""
    session: str = ""
    """The clock of the report that is read now; empty before the first banner that says what it was made of."""

    def made_of(self, database: str) -> None:
        """Note what the reports that follow were made of."""
        if database not in self.databases:
            self.databases.append(database)
        place = self.databases.index(database)
        self.session = f"{self.clock}/{place}" if place else self.clock


def settle(source: Source, table: ReportTable | None) -> None:
    """Enter the fates of a table that ended."""
    for (kind, plane, cut), records in table.fates.items() if table else ():
        if cut:
            source.fates.repair(kind, plane, "sub_nanosecond", records)
        else:
            source.fates.keep(kind, plane, records)


def account(source: Source, piece: Piece) -> None:
    """The fate of a record that is no row of a table."""
    if piece.kind == "broken":
        source.fates.drop("row", "undecodable_record", piece.text, line=piece.line)
    elif piece.kind == "damage":
        source.fates.note("damaged_stream", "data_loss", piece.text)
    elif piece.kind in ("text", "row"):
        source.fates.drop("text", "no_csv", f"found {piece.text[:80]!r}", severity="warning", line=piece.line)
    else:
        source.fates.keep(piece.kind, None)
    if piece.kind == "banner":
        source.report = piece.text
        if piece.database:
            source.made_of(piece.database)
    elif piece.kind == "skipped":
        source.fates.note("report_skipped", "info", f"{source.report or 'a report'}: {piece.text}", line=piece.line)
        if len(source.skipped) < 3:
            source.skipped.append(f"{source.report or 'a report'} ({piece.text})")
