"""The store: one folder of staged and published runs (docs/architecture.md, "A store")."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from ..recorder.errors import InputRefused
from .fsio import temporary_sibling
from .run_folder import RunFolder, is_run_key, run_key
from .store_format import check_format, complete_layout, create_store, refuse_path

if TYPE_CHECKING:
    import duckdb

__all__ = ["RunFolder", "Store", "run_key"]

LOCK_TIMEOUT_S = 600.0
"""How long a stage waits for another process that works on the same store."""

_ALIVE = ".alive"


@dataclass(frozen=True)
class Orphan:
    """A file on object storage that no manifest names: its address, size, age, and what removes it."""

    address: str
    bytes: int
    days: float
    remove: Callable[[], None]


class Store:
    """One store. Many processes may open it; whoever moves a run holds :meth:`lock` while doing so."""

    def __init__(self, path: Path) -> None:
        """Use :meth:`open`."""
        self.path = path
        self.faults: dict[str, str] = {}
        """Folder name -> why a published bundle could not be fetched or shared; none in a local store."""
        self._lock = FileLock(path / ".lock")

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False) -> Store:
        """Open the store at ``path``, with ``create`` making it in an absent or empty folder.

        Removes what killed processes left half-written. Raises :class:`UsageError` for a path that can hold no store,
        :class:`InputRefused` for a folder that is none, :class:`IncompatibleInput` for one of another version.
        """
        root = Path(path).resolve()
        refuse_path(root)
        if create and not (root / "store.json").exists():
            create_store(root)
        check_format(root)
        store = cls(root)
        complete_layout(root)
        store._sweep()
        return store

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the store against other processes; the lock of a killed process is free at once. Reentrant."""
        try:
            self._lock.acquire(timeout=LOCK_TIMEOUT_S)
        except Timeout:
            raise InputRefused(
                f"another process has held the store for {LOCK_TIMEOUT_S:.0f} s",
                source=self.path,
                code="store_locked",
                remedy="wait for it to end, then run again",
            ) from None
        try:
            yield
        finally:
            self._lock.release()

    def staged(self) -> list[RunFolder]:
        """The staged runs, by folder name."""
        return self._runs("staging", published=False)

    def bundles(self) -> list[RunFolder]:
        """The published runs, by folder name."""
        return self._runs("bundles", published=True)

    def held(self) -> list[RunFolder]:
        """The published runs that are on this machine: all of a local store."""
        return self._runs("bundles", published=True)

    def strays(self) -> list[Path]:
        """What lies among the staged and published runs and is none: no folder, or one :func:`run_key` never names.

        No stage and no view reads a stray, or takes it away.
        """
        places = [self.path / place for place in ("staging", "bundles")]
        return sorted(Path(entry) for place in places for entry in _scan(place) if not _is_run(entry))

    def bundle_paths(self) -> dict[str, Path]:
        """Run id -> folder of every published run that can be read, as the run itself says; strays are left out."""
        found = {}
        for bundle in self.bundles():
            with suppress(InputRefused):
                found[bundle.run_id] = bundle.path
        return found

    def find_bundle(self, run_id: str) -> Path | None:
        """The folder where a run is published, readable or damaged; None when there is none."""
        path = self.path / "bundles" / run_key(run_id)
        return path if path.is_dir() else None

    def find(self, run_id: str) -> RunFolder | None:
        """The folder of a run, or None. Staging is asked first: a run that moves meanwhile is met in the second."""
        key = run_key(run_id)
        for place, published in (("staging", False), ("bundles", True)):
            if (self.path / place / key).is_dir():
                return RunFolder(self.path / place / key, published)
        return None

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A private folder under ``tmp/`` for half-written things, removed at the end.

        Its owner holds a lock inside it, so the next :meth:`open` can tell the folder of a killed process.
        """
        folder = self.path / "tmp" / f"{os.getpid()}-{time.time_ns()}-{secrets.token_hex(4)}"
        alive = FileLock(folder / _ALIVE)
        with self.lock():
            folder.mkdir()
            alive.acquire()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            alive.release()

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A read-only connection to the catalogue, which is rebuilt first when the views or the path have changed."""
        from .catalog import catalogue_connection

        return catalogue_connection(self.path)

    def share(self) -> dict[str, str]:
        """Make what was published here known elsewhere; folder name -> why a bundle could not be. A local store is."""
        return {}

    def refresh_documents(self) -> None:
        """Bring tables and campaign documents of other machines here; a local store has none."""

    def share_documents(self, *, gone: str | None = None) -> None:
        """Make tables and campaign documents known elsewhere, and that the one at path ``gone`` is no more."""

    def orphans(self) -> Iterator[Orphan]:
        """Files on object storage that belong to no bundle; a local store has none."""
        return iter(())

    @property
    def address(self) -> str:
        """Where the store is, as people name it."""
        return str(self.path)

    def withdraw(self) -> bool:
        """Take away a store that holds nothing, for whoever has just made it in vain; True when it is gone.

        It leaves by one rename, so another process finds a whole store or none.
        """
        with self.lock():
            if any(_scan(self.path / place) for place in ("staging", "bundles", "tmp", "campaigns")):
                return False
            aside = temporary_sibling(self.path)
            os.rename(self.path, aside)
        shutil.rmtree(aside, ignore_errors=True)
        return True

    def _runs(self, place: str, *, published: bool) -> list[RunFolder]:
        names = sorted(entry.name for entry in _scan(self.path / place) if _is_run(entry))
        return [RunFolder(self.path / place / name, published) for name in names]

    def _sweep(self) -> None:
        folders = [entry.path for entry in os.scandir(self.path / "tmp") if entry.is_dir(follow_symlinks=False)]
        if not folders or not os.access(self.path / "tmp", os.W_OK):
            return
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return  # Whoever holds the store is alive; the next open sweeps.
        try:
            for folder in folders:
                _remove_if_dead(Path(folder))
        finally:
            self._lock.release()


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except FileNotFoundError:
        return []


def _is_run(entry: os.DirEntry[str]) -> bool:
    return is_run_key(entry.name) and entry.is_dir()


def _remove_if_dead(folder: Path) -> None:
    alive = FileLock(folder / _ALIVE)
    try:
        alive.acquire(timeout=0)
    except Timeout:
        return
    try:
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        alive.release()
