"""What became of every record of one file: its ledger and its issue rows, kept together so that they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .contract import IssueLog, PlaneBatch
from .foreign import Ledger

SINGLE_ISSUES = 100
"""Issues of one code that get a row each; the rest of them share one row, so a broken file cannot flood the plane."""


class Fates:
    """The fates of the records of one file of a foreign source.

    Attributes
    ----------
    rows:
        Rows per plane so far, as the ledger counts them.
    data_lost:
        True once an issue of severity ``data_loss`` was noted.
    """

    def __init__(self, file: str) -> None:
        self.rows: Counter[str] = Counter()
        self.data_lost = False
        self._file = file
        self._ledger = Ledger()
        self._issues = IssueLog()
        self._seen: Counter[tuple[str, str]] = Counter()

    def enter(self, file: str) -> None:
        """What comes from now on is of this file of the source."""
        self._file = file

    def keep(self, kind: str, plane: str | None, records: int = 1) -> None:
        """Records that became rows of ``plane``, or that describe the run (None)."""
        self._ledger.kept(self._file, kind, plane, records)
        if plane:
            self.rows[plane] += records

    def repair(self, kind: str, plane: str, reason: str, records: int = 1) -> None:
        """Records kept after a repair; note separately what the repair lost, if it lost anything."""
        self._ledger.repaired(self._file, kind, plane, reason, records)
        self.rows[plane] += records

    def drop(
        self,
        kind: str,
        reason: str,
        message: str,
        *,
        severity: str = "data_loss",
        records: int = 1,
        line: int | None = None,
        offset: int | None = None,
    ) -> None:
        """Records that became no row, with the issue that says why."""
        self._ledger.dropped(self._file, kind, reason, records)
        self.note(reason, severity, message, line=line, offset=offset)

    def leave_out(self, kind: str, reason: str, records: int = 1) -> None:
        """Records left out by a rule of the format that loses nothing; no issue."""
        self._ledger.dropped(self._file, kind, reason, records)

    def note(
        self, code: str, severity: str, message: str, *, line: int | None = None, offset: int | None = None
    ) -> None:
        """Note one fact; the first :data:`SINGLE_ISSUES` of a code have a row each."""
        self.data_lost = self.data_lost or severity == "data_loss"
        self._seen[code, severity] += 1
        if self._seen[code, severity] <= SINGLE_ISSUES:
            self._issues.note(self._file, code, severity, message, line=line, offset=offset)

    def batches(self, run_id: str) -> Iterator[PlaneBatch]:
        """The issue rows and the ledger; call once, after the last record."""
        for (code, severity), count in self._seen.items():
            if count > SINGLE_ISSUES:
                rest = f"{count - SINGLE_ISSUES} more of these, which have no row of their own"
                self._issues.note(self._file, code, severity, rest)
        yield from self._issues.batches(run_id)
        yield from self._ledger.batches(run_id)
