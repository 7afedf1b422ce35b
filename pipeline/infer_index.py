"""What an inference artifact knows of itself: its parts, its envelope, and the identities of all its events.

One SQLite file is the lock, the transaction and the list of what counts: a part or a run of identities that it does
not name is the remains of a killed writer. Identities lie in sorted runs of 64-bit keys beside it, which are merged so
that there are never more than a few; looking up and adding cost what is new, not what is there.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..recorder.errors import IncompatibleInput, InputRefused, UsageError
from .fsio import sync_file, sync_folder

INDEX = "infer.sqlite"
VERSION = 1
LOCK_TIMEOUT_S = 600.0
_TABLES = """
CREATE TABLE artifact(format TEXT, version INTEGER, run_id TEXT, session_id TEXT);
CREATE TABLE parts(number INTEGER PRIMARY KEY, digest TEXT UNIQUE, next_seq INTEGER);
CREATE TABLE contexts(id TEXT PRIMARY KEY);
CREATE TABLE envelope(id TEXT PRIMARY KEY, row TEXT);
CREATE TABLE runs(number INTEGER PRIMARY KEY, entries INTEGER);
"""


def create_index(folder: Path, run_id: str) -> None:
    """Make the index of a new artifact; whoever finds one finds a whole one. Raises ``sqlite3.Error``, ``OSError``."""
    with _closing(sqlite3.connect(folder / INDEX, isolation_level=None)) as con:
        con.executescript(f"BEGIN; {_TABLES}")
        con.execute("INSERT INTO artifact VALUES ('planewise.inference', ?, ?, NULL)", [VERSION, run_id])
        con.execute("COMMIT")
    sync_folder(folder)


class Index:
    """The index while it is held; use :func:`held`."""

    def __init__(self, folder: Path, con: sqlite3.Connection) -> None:
        self.folder = folder
        self._con = con
        self._stale: list[Path] = []
        format_, version, self.run_id, self.session_id = con.execute("SELECT * FROM artifact").fetchone()
        if (format_, version) != ("planewise.inference", VERSION):
            found = f"is {format_} of version {version}, expected planewise.inference of version {VERSION}"
            raise IncompatibleInput(found, source=folder)

    def set_session(self, session_id: str) -> None:
        """The artifact belongs to this session from now on."""
        self._con.execute("UPDATE artifact SET session_id = ?", [session_id])

    def part_of(self, digest: str) -> int | None:
        """The number of the part that an append of this digest made; None for none."""
        row = self._con.execute("SELECT number FROM parts WHERE digest = ?", [digest]).fetchone()
        return None if row is None else int(row[0])

    def next(self) -> tuple[int, int]:
        """Number and first ``seq`` of the next part."""
        row = self._con.execute("SELECT number, next_seq FROM parts ORDER BY number DESC LIMIT 1").fetchone()
        return (1, 0) if row is None else (row[0] + 1, row[1])

    def unknown_contexts(self, ids: list[str]) -> list[str]:
        """Those of the ids that no part defines yet; they count as defined from now on."""
        fresh = [id_ for id_ in ids if not self._has("contexts", id_)]
        self._con.executemany("INSERT INTO contexts VALUES (?)", [(id_,) for id_ in fresh])
        return fresh

    def envelope_row(self, id_: str) -> dict[str, Any] | None:
        """One row of the envelope; None when it has none of this id."""
        row = self._con.execute("SELECT row FROM envelope WHERE id = ?", [id_]).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def add_envelope_row(self, id_: str, row: dict[str, Any]) -> None:
        """Add one row to the envelope."""
        self._con.execute("INSERT INTO envelope VALUES (?, ?)", [id_, json.dumps(row, sort_keys=True)])

    def facts_of(self, keys: Any) -> tuple[Any, Any]:
        """For each key, whether the artifact has it, and the digest of what it stands for (0 where it has not)."""
        known, facts = np.zeros(len(keys), bool), np.zeros(len(keys), np.uint64)
        for (number,) in self._con.execute("SELECT number FROM runs"):
            run = np.load(self._run(number), mmap_mode="r")
            places = np.searchsorted(run[0], keys)
            places[places == run.shape[1]] = 0
            hits = run[0][places] == keys
            known |= hits
            facts[hits] = run[1][places[hits]]
        return known, facts

    def add_facts(self, number: int, keys: Any, facts: Any) -> None:
        """Add identities under the number of their part, merged with the runs before that are not much longer."""
        runs = self._con.execute("SELECT number, entries FROM runs ORDER BY number DESC").fetchall()
        merged = [np.stack([keys, facts])]
        entries = len(keys)
        for before, length in runs:
            if length > 2 * entries:
                break
            merged.append(np.load(self._run(before)))
            entries += length
            self._con.execute("DELETE FROM runs WHERE number = ?", [before])
            self._stale.append(self._run(before))
        run = np.concatenate(merged, axis=1)
        run = run[:, np.argsort(run[0], kind="stable")]
        self._run(number).unlink(missing_ok=True)
        np.save(self._run(number), run)
        sync_file(self._run(number))
        self._con.execute("INSERT INTO runs VALUES (?, ?)", [number, entries])

    def add_part(self, number: int, digest: str, next_seq: int) -> None:
        """The part counts from the end of the transaction on."""
        self._con.execute("INSERT INTO parts VALUES (?, ?, ?)", [number, digest, next_seq])

    def _run(self, number: int) -> Path:
        return self.folder / "index" / f"{number:08}.npy"

    def _has(self, table: str, id_: str) -> bool:
        return self._con.execute(f"SELECT 1 FROM {table} WHERE id = ?", [id_]).fetchone() is not None


@contextmanager
def held(folder: Path) -> Iterator[Index]:
    """Hold the index against every other process, and commit at the end unless something is raised.

    Raises :class:`UsageError` for a folder that is no artifact, :class:`IncompatibleInput` for one of another version,
    :class:`InputRefused` when another process holds it for ten minutes or the index is damaged.
    """
    if not (folder / INDEX).is_file():
        raise UsageError(
            "is no inference artifact",
            source=folder,
            code="no_artifact",
            remedy="make one with create_inference_artifact",
        )
    try:
        with _closing(sqlite3.connect(folder / INDEX, timeout=LOCK_TIMEOUT_S, isolation_level=None)) as con:
            con.execute("BEGIN IMMEDIATE")
            index = Index(folder, con)
            shutil.rmtree(folder / "tmp", ignore_errors=True)
            yield index
            con.execute("COMMIT")
            for path in index._stale:
                with suppress(OSError):
                    path.unlink()
    except sqlite3.Error as error:
        raise InputRefused(f"its index cannot be used: {error}", source=folder / INDEX, code="index") from error


@contextmanager
def _closing(con: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield con
    finally:
        con.close()
