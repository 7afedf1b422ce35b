"""What the tables of an Ascend database are, as data, and access to them that tolerates what SQLite tolerates."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from ..recorder.planes import INT64_MAX

STRINGS = "STRING_IDS"
_WHOLE = re.compile(r"\s*-?[0-9]{1,20}\s*")
EVIDENCE = frozenset({"TASK", "CANN_API", "PYTORCH_API", "MEMORY_RECORD", "OP_MEMORY", "NPU_OP_MEM", "NPU_INFO"})
"""Tables of which one at least tells, beside STRING_IDS, that a database is Ascend's."""

ABOUT_THE_RUN = frozenset(
    {
        STRINGS,
        "META_DATA",
        "HOST_INFO",
        "NPU_INFO",
        "SESSION_TIME_INFO",
        "RANK_DEVICE_MAP",
        "CONNECTION_IDS",
        "COMPUTE_TASK_INFO",
        "COMMUNICATION_TASK_INFO",
        "status_info",
    }
)
"""Tables whose rows describe the run or other rows; so do all whose name begins with ``ENUM_``."""

REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "PYTORCH_API": ("startNs", "endNs", "globalTid", "name", "type"),
        "MSTX_EVENTS": ("startNs", "endNs", "globalTid", "message"),
        "STEP_TIME": ("id", "startNs", "endNs"),
        "CANN_API": ("startNs", "endNs", "globalTid", "name", "type", "connectionId"),
        "TASK": ("startNs", "endNs", "deviceId", "globalTaskId", "taskType", "streamId"),
        "COMMUNICATION_OP": ("opName", "startNs", "endNs", "connectionId"),
        "MEMORY_RECORD": ("component", "timestamp", "totalAllocated", "totalReserved", "deviceId"),
        "OP_MEMORY": ("name", "size", "allocationTime", "releaseTime", "deviceId"),
        "NPU_OP_MEM": ("operatorName", "addr", "type", "size", "timestampNs", "deviceId"),
    }
)
"""Tables that become rows, in the order in which they are read, and the columns they cannot do without."""

COUNTERS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "NPU_MEM": (("type",), ("ddr", "hbm")),
        "NPU_MODULE_MEM": (("moduleId",), ("totalReserved",)),
        "HBM": (("hbmId", "type"), ("bandwidth",)),
        "DDR": ((), ("read", "write")),
        "LLC": (("llcId", "mode"), ("hitRate", "throughput")),
        "ACC_PMU": (("accId",), ("readBwLevel", "writeBwLevel", "readOstLevel", "writeOstLevel")),
        "SOC_BANDWIDTH_LEVEL": ((), ("l2BufferBwLevel", "mataBwLevel")),
        "AICORE_FREQ": ((), ("freq",)),
    }
)
"""Tables of samples: the columns that name what was sampled, and the columns sampled."""


class Database:
    """A database, read only. Every method may raise ``sqlite3.Error``."""

    def __init__(self, path: Path) -> None:
        where = quote(str(path.absolute()))
        self._connection = sqlite3.connect(f"file:{where}?mode=ro&immutable=1", uri=True)
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
        try:
            found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
            self.tables: tuple[str, ...] = tuple(name for (name,) in found if not name.startswith("sqlite_"))
        except sqlite3.Error:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def columns(self, table: str) -> tuple[str, ...]:
        """The names of a table's columns; none when there is no such table."""
        return tuple(row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})"))

    def count(self, table: str) -> int:
        """The number of rows of a table."""
        return int(self._connection.execute(f"SELECT count(*) FROM {_quoted(table)}").fetchone()[0])

    def rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Some columns of every row, in the order of the table; a column that the table lacks is NULL."""
        if table not in self.tables:
            return
        known = self.columns(table)
        shown = ", ".join(_quoted(name) if name in known else "NULL" for name in columns)
        with closing(self._connection.cursor()) as cursor:
            try:
                cursor.execute(f"SELECT {shown} FROM {_quoted(table)} ORDER BY rowid")
            except sqlite3.OperationalError:
                cursor.execute(f"SELECT {shown} FROM {_quoted(table)}")  # A table made WITHOUT ROWID.
            yield from cursor

    def names(self, table: str, key: str = "id", value: str = "name") -> dict[Any, str]:
        """A table of names as text, by id; an id without a name is left out."""
        return {id_: str(name) for id_, name in self.rows(table, key, value) if name is not None}


def is_ascend(path: Path) -> bool:
    """True for a database with Ascend's tables; False for whatever cannot be opened."""
    try:
        with path.open("rb") as stream:
            if stream.read(16) != b"SQLite format 3\0":
                return False
        with closing(Database(path)) as database:
            return STRINGS in database.tables and not EVIDENCE.isdisjoint(database.tables)
    except (OSError, sqlite3.Error, ValueError):
        return False


def integer(value: Any) -> int | None:
    """The integer a cell holds, as INTEGER, as TEXT or as a REAL that is whole; None for anything else."""
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else None
    if isinstance(value, float):
        value = int(value) if value.is_integer() and abs(value) <= 2**53 else None
    return value if isinstance(value, int) and -INT64_MAX - 1 <= value <= INT64_MAX else None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
