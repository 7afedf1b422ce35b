"""Reader of the SQLite databases of Ascend: ``ascend_pytorch_profiler_*.db`` and ``msprof_*.db``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ..recorder.errors import InputRefused
from .ascend_database import DatabaseRows
from .ascend_tables import Database, integer, is_ascend
from .ascend_tasks import TASKS_VERSION
from .contract import PlaneBatch
from .foreign import ForeignRun, foreign_run_id
from .source import source_digest


class AscendDbReader:
    """Reads Ascend's databases."""

    name = "ascend-db"
    doc = "Ascend PyTorch profiler or msprof database, SQLite"

    def detect(self, path: Path) -> bool:
        """True for an SQLite file that has the tables of an Ascend profiler."""
        return path.is_file() and is_ascend(path)

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` for a database that is damaged anywhere."""
        path = Path(path)
        digest = source_digest(path)
        try:
            with closing(Database(path)) as database:
                yield from self._planes(path, digest, database)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # The latter for a damaged text of SQLite's own message.
            message = f"the database cannot be read: {error}"
            raise InputRefused(message, source=path, code="damaged_database", remedy="copy it again") from None

    def _planes(self, path: Path, digest: str, database: Database) -> Iterator[PlaneBatch]:
        run_id = foreign_run_id(path, digest)
        rows = DatabaseRows(path, run_id, database)
        yield from rows.batches()
        yield from rows.fates.batches(run_id)
        meta = database.names("META_DATA", "name", "value")
        started = next(database.rows("SESSION_TIME_INFO", "startTimeNs"), (None,))[0]
        ranks = [integer(rank) for (rank,) in database.rows("RANK_DEVICE_MAP", "rankId")]
        run = ForeignRun(
            run_id=run_id,
            schema="ascend/db",
            source_format=self.name,
            source_digest=digest,
            producer="Ascend PyTorch profiler" if "PYTORCH_API" in database.tables else "msprof",
            source_version=meta.get("SCHEMA_VERSION"),
            time_unit="ns",
            host_clock_id=run_id,
            link_keys=("CONNECTION_IDS.id", "connectionId"),
            timestamp=None if started is None else str(started),
            device=next(iter(rows.devices)) if len(rows.devices) == 1 else None,
            rank=ranks[0] if len(ranks) == 1 and (ranks[0] or 0) >= 0 else None,
            tags={"planewise.ascend_tasks": str(TASKS_VERSION)},
            data_lost=rows.fates.data_lost,
        )
        yield run.batch(path, rows.fates.rows)
