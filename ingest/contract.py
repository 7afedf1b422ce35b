"""What a reader is: content in, Arrow batches per plane out, and nothing else of the house.

Readers, and only readers, know foreign formats. A reader yields plane rows (issue rows among them, plane
``ingest_issues``) in any grouping, each plane's rows in ``seq`` order. It refuses by raising from its iterator;
whoever consumes the iterator then discards everything it yielded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from ..recorder.planes import PLANES


@dataclass(frozen=True)
class PlaneBatch:
    """Some rows of one plane; ``table`` has exactly the columns, types and order of ``PLANES[plane]``."""

    plane: str
    table: Any


class Reader(Protocol):
    """One input format.

    Attributes
    ----------
    name:
        The name users type and the ``source_format`` of the run row, e.g. ``candle-trace``.
    doc:
        What the format is, in a few words, for lists of formats.
    """

    @property
    def name(self) -> str: ...

    @property
    def doc(self) -> str: ...

    def detect(self, path: Path) -> bool:
        """True when the content at ``path`` looks like this format; never raises for unreadable content."""
        ...

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes of the source, the single ``runs`` row included.

        Raises :class:`InputRefused` (or its child :class:`IncompatibleInput`) from the iterator.
        """
        ...


def batch(plane: str, rows: Sequence[Mapping[str, Any]]) -> PlaneBatch:
    """A batch from literal rows; a column a row lacks is NULL. For the few rows that are not streamed."""
    return PlaneBatch(plane, pa.Table.from_pylist([dict(row) for row in rows], schema=PLANES[plane].schema))


def widen(plane: str, table: Any) -> Any:
    """The table with every column of its plane, in the plane's order; a column it lacks is NULL."""
    schema = PLANES[plane].schema
    present = set(table.column_names)
    columns = [
        table.column(field.name) if field.name in present else pa.nulls(table.num_rows, field.type) for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass
class IssueLog:
    """Collects rows of the plane ``ingest_issues`` for one source, in the order they were noted."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def note(
        self, file: str, code: str, severity: str, message: str, *, line: int | None = None, offset: int | None = None
    ) -> None:
        """Note one fact; ``severity`` is info, warning, error or data_loss."""
        issue = {"file": file, "line": line, "byte_offset": offset, "code": code, "severity": severity}
        self.rows.append({**issue, "message": message, "seq": len(self.rows)})

    def batches(self, run_id: str) -> Iterator[PlaneBatch]:
        """The noted rows as one batch; nothing when nothing was noted."""
        if self.rows:
            yield batch("ingest_issues", [{**row, "run_id": run_id} for row in self.rows])
