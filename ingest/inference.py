"""Reader of planewise's own inference artifacts: the parts that the index names, as they were appended (docs/infer.md).

Attached traces that were copied come along as attachments; those that are referenced are measured again, and a file
that is gone or differs is an issue, since the evidence stands without it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..recorder.errors import IncompatibleInput, InputRefused
from .contract import PlaneBatch, batch, widen
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .source import source_digest, source_name

_INDEX = "infer.sqlite"
_FORMAT = ("planewise.inference", 1)


class InferenceReader:
    """Reads inference artifacts of planewise."""

    name = "inference"
    doc = "inference artifact of planewise, a folder"

    def detect(self, path: Path) -> bool:
        """True for a folder with the index of an artifact in it."""
        return (path / _INDEX).is_file()

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` when the index or a part cannot be read."""
        path = Path(path)
        try:
            yield from _Artifact(path).batches()
        except (sqlite3.Error, pa.ArrowException, OSError, KeyError) as error:
            raise InputRefused(f"cannot be read: {str(error)[:200]}", source=path, code="unreadable") from error


class _Artifact:
    """One artifact while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digest = source_digest(path)
        self._run_id = foreign_run_id(path, self._digest)
        self._fates = Fates(source_name(path))
        self._attached = 0

    def batches(self) -> Iterator[PlaneBatch]:
        run_id, parts, envelope = self._index()
        for number in parts:
            for plane in ("engine_events", "activities"):
                yield from self._part(number, plane)
        for row in envelope:
            yield from self._attachment(row)
        yield from self._fates.batches(self._run_id)
        yield ForeignRun(
            run_id=self._run_id,
            schema="infer",
            source_format=InferenceReader.name,
            source_digest=self._digest,
            producer="planewise",
            source_version=str(_FORMAT[1]),
            time_unit="ns",
            link_keys=("cuda_correlation_id", "runtime_correlation_id"),
            tags={"infer.run_id": run_id},
            data_lost=self._fates.data_lost,
        ).batch(self._path, self._fates.rows)

    def _index(self) -> tuple[str, list[int], list[dict[str, Any]]]:
        uri = f"{(self._path / _INDEX).absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=60)) as con:
            con.execute("BEGIN")
            *found, run_id = con.execute("SELECT format, version, run_id FROM artifact").fetchone()
            if tuple(found) != _FORMAT:
                message = f"is {found[0]} of version {found[1]}, expected {_FORMAT[0]} of version {_FORMAT[1]}"
                raise IncompatibleInput(message, source=self._path)
            parts = [number for (number,) in con.execute("SELECT number FROM parts ORDER BY number")]
            rows = con.execute("SELECT row FROM envelope WHERE id LIKE 'attachment:%' ORDER BY id").fetchall()
        return run_id, parts, [json.loads(row) for (row,) in rows]

    def _part(self, number: int, plane: str) -> Iterator[PlaneBatch]:
        path = self._path / "parts" / f"{number:08}" / f"{plane}.parquet"
        if not path.exists():
            return
        for rows in pq.ParquetFile(path).iter_batches():
            table = pa.Table.from_batches([rows])
            run = pa.repeat(pa.scalar(self._run_id), table.num_rows)
            table = table.set_column(table.column_names.index("run_id"), "run_id", run)
            kinds = table.column("event_type" if plane == "engine_events" else "kind")
            for kind in pc.value_counts(kinds.combine_chunks()).to_pylist():
                name = kind["values"] if plane == "engine_events" else "infer.activity_ref"
                self._fates.keep(name, plane, kind["counts"])
            yield PlaneBatch(plane, widen(plane, table))

    def _attachment(self, row: dict[str, Any]) -> Iterator[PlaneBatch]:
        if "path" not in row:
            return
        if row["storage"] == "copy":
            cells = {name: row[name] for name in ("path", "title", "bytes", "sha256")}
            yield batch("attachments", [{"run_id": self._run_id, "seq": self._attached, **cells}])
            self._attached += 1
            return
        file = self._path.resolve().parent / row["path"]
        if not file.is_file():
            self._fates.note("attachment_missing", "warning", f"the trace {row['path']!r:.120} is not there any more")
        elif _measured(file) != (row["bytes"], row["sha256"]):
            self._fates.note("attachment_differs", "warning", f"the trace {row['path']!r:.120} is not what it was")


def _measured(file: Path) -> tuple[int, str]:
    with file.open("rb") as stream:
        return file.stat().st_size, hashlib.file_digest(stream, "sha256").hexdigest()
