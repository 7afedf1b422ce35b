"""Access to an Nsight Systems SQLite export: read only, immutable, in table order, streaming."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .nsys_tables import STRINGS, is_evidence

FETCHED_ROWS = 1 << 15
_KEPT_TEXTS = 1 << 17
_MAGIC = b"SQLite format 3\0"
_ZEROED = 4096
_BTREE = (2, 5, 10, 13)
"""First bytes that a page of an SQLite database may have when it is a b-tree page."""


class NsysDatabase:
    """An open export. Every method may raise ``sqlite3.Error``.

    Attributes
    ----------
    tables:
        Columns by table, tables and columns in the order of the file.
    """

    def __init__(self, path: Path) -> None:
        where = quote(str(path.absolute()))
        self._connection = sqlite3.connect(f"file:{where}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace").replace("\0", "\ufffd")
        self._texts: dict[Any, str | None] = {}
        try:
            found = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
            names = [name for (name,) in found.fetchall() if not name.startswith("sqlite_")]
            self.tables: dict[str, tuple[str, ...]] = {name: self._columns(name) for name in names}
            self._has_texts = {"id", "value"} <= set(self.tables.get(STRINGS, ()))
            self._load_texts_without_key()
        except sqlite3.Error:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> NsysDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _columns(self, table: str) -> tuple[str, ...]:
        return tuple(row[1] for row in self._connection.execute(f"PRAGMA table_info({quoted(table)})"))

    def _load_texts_without_key(self) -> None:
        """A table without a primary key would be searched for every id; then all texts are held instead."""
        info = self._connection.execute(f"PRAGMA table_info({quoted(STRINGS)})").fetchall()
        if self._has_texts and not any(name == "id" and key for _, name, _, _, _, key in info):
            self._texts = {key: str(value) for key, value in self.pairs(STRINGS, "id", "value") if value is not None}
            self._has_texts = False

    def count(self, table: str) -> int:
        """The number of rows of a table."""
        return int(self._connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0])

    def chunks(self, sql: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a query in lists of bounded length."""
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(sql)
            while rows := cursor.fetchmany(FETCHED_ROWS):
                yield rows

    def pairs(self, table: str, key: str, value: str) -> list[tuple[Any, Any]]:
        """Two columns of a small table; nothing when it lacks one of them."""
        if not {key, value} <= set(self.tables.get(table, ())):
            return []
        return self._connection.execute(f"SELECT {quoted(key)}, {quoted(value)} FROM {quoted(table)}").fetchall()

    def text(self, key: Any) -> str | None:
        """The text of an id of StringIds; text stays what it is, and an id without text is None."""
        if key is None or isinstance(key, str):
            return key
        if self._has_texts and key not in self._texts:
            if len(self._texts) >= _KEPT_TEXTS:
                self._texts.clear()
            self._texts[key] = self._looked_up(key)
        return self._texts.get(key)

    def texts(self, keys: Sequence[Any]) -> list[str | None]:
        """The texts of many ids."""
        known = list(map(self._texts.get, keys))
        if None not in known:
            return known
        return [self.text(key) if text is None else text for text, key in zip(known, keys, strict=True)]

    def _looked_up(self, key: Any) -> str | None:
        found = self._connection.execute(f"SELECT value FROM {STRINGS} WHERE id = ?", (key,)).fetchone()
        return None if found is None or found[0] is None else str(found[0])


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def is_nsys(path: Path) -> bool:
    """True for an SQLite file with the tables of Nsight Systems; False for whatever cannot be opened."""
    try:
        with path.open("rb") as stream:
            if stream.read(16) != _MAGIC:
                return False
        with NsysDatabase(path) as database:
            return any(is_evidence(table) for table in database.tables)
    except (OSError, sqlite3.Error, ValueError):
        return False


def is_zeroed(path: Path) -> bool:
    """True for an SQLite file whose first page, with the header, was never written: zeros, then b-tree pages."""
    try:
        with path.open("rb") as stream:
            first, second = stream.read(_ZEROED), stream.read(8)
    except OSError:
        return False
    if len(second) < 8 or first.strip(b"\0"):
        return False
    return second[0] in _BTREE and second[7] == 0 and int.from_bytes(second[3:5]) < _ZEROED // 4
