"""Takes out of a store what can be computed again and nobody has asked for lately; bundles and staged runs stay."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .fsio import is_temporary, sync_folder, walk
from .results_index import results_folder
from .store import Store

KEEP_DAYS = 30.0
"""Days for which results of other views are kept: another version of planewise may still work on the store."""

_DAY_S = 86_400
_HALF_MADE_DAYS = 1.0


@dataclass(frozen=True)
class Waste:
    """What can go: ``kind`` is other_views (results of views that are not today's), half_made, or orphan.

    ``days`` is the age of its newest file. An orphan is a file on object storage that belongs to no bundle.
    """

    path: Path | str
    kind: str
    bytes: int
    days: float
    remove: Callable[[], None] | None = None
    """Removes an orphan; None for a folder."""


def find_waste(store: Store, *, keep_days: float = KEEP_DAYS) -> list[Waste]:
    """Results of other views that nobody wrote to for ``keep_days``, and what killed processes left half-made."""
    folders = sorted(
        _found(store.path / "results", results_folder(store.path), keep_days), key=lambda one: str(one.path)
    )
    return folders + [Waste(one.address, "orphan", one.bytes, one.days, one.remove) for one in store.orphans()]


def vacuum(store: Store, *, keep_days: float = KEEP_DAYS) -> list[Waste]:
    """Remove what :func:`find_waste` finds, each folder by one rename; returns what is gone. Raises ``OSError``."""
    gone = []
    for waste in find_waste(store, keep_days=keep_days):
        if waste.remove is not None:
            waste.remove()
        elif not _remove(store, Path(waste.path)):
            continue
        gone.append(waste)
    return gone


def _found(folder: Path, current: Path, keep_days: float) -> Iterator[Waste]:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path == current or path.is_symlink() or not path.is_dir():
            continue
        half_made = is_temporary(path.name)
        stats = [entry.stat(follow_symlinks=False) for _, entry in walk(path)]
        newest = max((stat.st_mtime for stat in stats), default=path.stat().st_mtime)
        days = (time.time() - newest) / _DAY_S
        if days >= (_HALF_MADE_DAYS if half_made else keep_days):
            size = sum(stat.st_size for stat in stats)
            yield Waste(path, "half_made" if half_made else "other_views", size, days)


def _remove(store: Store, path: Path) -> bool:
    with store.scratch() as scratch, store.lock():
        if not path.is_dir():
            return False  # Another process was faster.
        os.rename(path, scratch / "waste")
        sync_folder(path.parent)
    return True
