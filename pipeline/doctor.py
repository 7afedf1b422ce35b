"""``planewise doctor``: what is wrong with a store, and what can be put right without losing anything."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..recorder.errors import PlanewiseError
from .bundle import MANIFEST, verify_bundle
from .catalog import build_catalog, catalogue_is_current
from .fsio import walk
from .manifest import read_manifest
from .progress import Progress
from .qualify import current_evidence
from .requalify import requalify
from .results_index import Run, known_results, results_folder
from .store import RunFolder, Store, run_key
from .tables import TABLES

LITTLE_SPACE = 1 << 30
"""Bytes below which a publication may fail for want of space."""

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be. ``fix`` puts it right and loses nothing; None: a person must look."""

    severity: str
    code: str
    path: str
    message: str
    remedy: str
    fix: Callable[[], object] | None = None


def examine(store: Store, *, quick: bool = False, progress: Progress | None = None) -> Iterator[Finding]:
    """Everything that is found, in the order of the checks; the store is only read.

    Every bundle is verified deeply, with ``quick`` only its manifest and the sizes of its files.
    """
    yield from _place(store)
    yield from _catalogue(store)
    yield from _strays(store)
    bundles = store.bundles()
    for done, run in enumerate(bundles):
        if progress:
            progress(done, len(bundles), run.key)
        yield from _bundle(run, quick=quick)
    if progress:
        progress(len(bundles), len(bundles), "")
    yield from _other_views(bundles)
    yield from _results(store, bundles)
    yield from _staged(store, {run.key for run in bundles})
    yield from _tables(store)


def _place(store: Store) -> Iterator[Finding]:
    if not os.access(store.path, os.W_OK):
        remedy = "give the user who publishes the right to write"
        yield Finding(WARNING, "not_writable", str(store.path), "the store cannot be written", remedy)
    free = shutil.disk_usage(store.path).free
    if free < LITTLE_SPACE:
        message = f"{free / 2**20:,.0f} MiB are free"
        yield Finding(WARNING, "little_space", str(store.path), message, "make room before the next night")


def _catalogue(store: Store) -> Iterator[Finding]:
    if not catalogue_is_current(store.path):
        yield Finding(
            WARNING, "catalogue_stale", str(store.path / "planewise.duckdb"),
            "is missing, or holds the views of another version or place", "run planewise catalog",
            lambda: build_catalog(store.path, force=True),
        )  # fmt: skip


def _strays(store: Store) -> Iterator[Finding]:
    for path in store.strays():
        yield Finding(WARNING, "stray", str(path), "is no run, and nothing reads it", "move it out of the store")


def _bundle(run: RunFolder, *, quick: bool) -> Iterator[Finding]:
    try:
        if quick:
            _sizes(run.path)
        else:
            verify_bundle(run.path)
        run_id = read_manifest(run.path)[0].run_id
    except (PlanewiseError, OSError) as error:
        remedy = "restore the bundle from a copy, or publish its source again under another run id"
        yield Finding(ERROR, "bundle_damaged", str(run.path), str(error), remedy)
        return
    if run_key(run_id) != run.path.name:
        message = f"holds the run {run_id!r:.80}, whose folder is {run_key(run_id)}"
        yield Finding(ERROR, "wrong_folder", str(run.path), message, "rename the folder to the name that is told")
    writable = [path for path, _ in walk(run.path) if (run.path / path).stat().st_mode & 0o222]
    if writable:
        message = f"{len(writable)} of its files can be written, first {writable[0]}"
        remedy = "take the right to write from its files"
        yield Finding(WARNING, "bundle_writable", str(run.path), message, remedy, lambda: _seal(run.path))


def _sizes(folder: Path) -> None:
    for file in read_manifest(folder)[0].files:
        size = (folder / file.path).stat().st_size
        if size != file.bytes:
            raise OSError(f"{file.path} has {size} bytes, its manifest says {file.bytes}")


def _seal(folder: Path) -> None:
    for path, _ in walk(folder):
        file = folder / path
        file.chmod(file.stat().st_mode & ~0o222)


def _other_views(bundles: list[RunFolder]) -> Iterator[Finding]:
    old = [run for run in bundles if (run.path / MANIFEST).exists() and current_evidence(run.path) is None]
    if old:
        message = f"the evidence of {len(old)} bundles was made by other views, first {old[0].key}"
        remedy = "nothing need be done: the views answer anew, and the bundles keep what they said"
        yield Finding(NOTE, "other_views", str(old[0].path.parent), message, remedy)


def _results(store: Store, bundles: list[RunFolder]) -> Iterator[Finding]:
    known = known_results(store.path)
    missing = 0
    for run in bundles:
        with suppress(PlanewiseError, OSError):
            manifest, digest = read_manifest(run.path)
            missing += Run(manifest.run_id, digest) not in known
    if missing:
        message = f"{missing} published runs have no results of these views; the schema results lacks them"
        place = str(results_folder(store.path))
        yield Finding(NOTE, "results_missing", place, message, "run planewise requalify", lambda: requalify(store))


def _staged(store: Store, published: set[str]) -> Iterator[Finding]:
    counts: Counter[str] = Counter()
    for run in store.staged():
        if run.key in published:
            message = "is staged and published; the views read it twice"
            remedy = "run planewise discard for the staged one"
            yield Finding(ERROR, "staged_and_published", str(run.path), message, remedy)
        with suppress(PlanewiseError, OSError):
            counts["unqualified" if current_evidence(run.path) is None else "qualified"] += 1
    for state, remedy in (("unqualified", "run planewise qualify"), ("qualified", "run planewise publish")):
        if counts[state]:
            message = f"{counts[state]} staged runs are {state} and not published"
            yield Finding(NOTE, f"staged_{state}", str(store.path / "staging"), message, remedy)


def _tables(store: Store) -> Iterator[Finding]:
    for name in TABLES:
        for path in sorted((store.path / "tables" / name).glob("*.parquet")):
            try:
                pq.read_table(path).cast(TABLES[name].schema)
            except (pa.ArrowException, OSError, ValueError) as error:
                remedy = "restore the file; the next night writes all but comparison_nights anew"
                yield Finding(ERROR, "table_damaged", str(path), f"cannot be read: {error}", remedy)
