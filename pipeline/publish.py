"""The stage ``publish``: a staged run becomes an immutable bundle by one rename (protocol 9.3)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..recorder.errors import Conflict, InputRefused, PlanewiseError
from .bundle import MANIFEST, Receipt, verify_bundle, write_manifest
from .fsio import sync_folder, sync_tree, walk
from .manifest import read_manifest
from .progress import Progress
from .side_by_side import KILLED, Jobs, is_apart, side_by_side
from .store import RunFolder, Store

if TYPE_CHECKING:
    from .pages.viewer import Viewers

_Staged = tuple[RunFolder, str | None]
"""A staged run, and why it has no evidence."""

PUBLICATION_SCHEMA = "planewise/publication/1"
"""Format of a publication receipt."""


@dataclass(frozen=True)
class Publication:
    """What became of one run: ``status`` is published, already_published or refused.

    ``manifest_sha256`` and ``verification`` are None for a refused run, which ``message`` explains; the message of a
    published one says why it has no viewer. A run that an
    earlier call published is listed without being read again, so it has no ``verification``.
    """

    run_id: str
    status: str
    bundle_path: str | None = None
    manifest_sha256: str | None = None
    verification: Receipt | None = None
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The publication as a document of schema planewise/publication/1."""
        return {
            "schema": PUBLICATION_SCHEMA,
            "status": self.status,
            "bundle_path": self.bundle_path,
            "run_id": self.run_id,
            "verification": None if self.verification is None else self.verification.to_json(),
        }


def publish(
    store: Store, *, progress: Progress | None = None, viewers: bool = True, jobs: Jobs = 1
) -> list[Publication]:
    """Publish every staged run, its evidence made first where it is missing, and list what was published before.

    One row per run of the store. With ``viewers`` each bundle gets a ``viewer.html`` (docs/report.md). ``jobs``
    processes work side by side. A run that cannot be published stays staged, is reported, and stops no other. A crash
    at any point leaves a run staged or published whole; the next call goes on from there.
    """
    refused = _qualified(store, jobs)
    staged = store.staged()
    results: dict[str, Publication] = {}
    coming = _publications(store, [(run, refused.get(run.key)) for run in staged], viewers, jobs)
    for done, run in enumerate(staged):
        if progress:
            progress(done, len(staged), run.key)
        results[run.key] = next(coming)
    if progress:
        progress(len(staged), len(staged), "")
    for key, fault in store.share().items():
        known = results.get(key) or Publication(key, "refused")
        results[key] = replace(known, status="refused", message=fault)
    earlier = {run.key: _earlier(run) for run in store.held() if run.key not in results}
    return [result for _, result in sorted((results | earlier).items())]


def publish_folder(staged: Path, destination: Path, run_id: str) -> Receipt:
    """Seal the run folder ``staged`` and rename it to ``destination``, on the same file system.

    Writes the manifest, takes write permission from the files, makes everything durable, verifies deeply, renames
    once. Raises :class:`Conflict` when something is at the destination, and whatever verification finds; then
    nothing has moved.
    """
    if os.path.lexists(destination):
        raise _taken(destination)
    write_manifest(staged, run_id)
    for path, _ in walk(staged):
        file = staged / path
        file.chmod(file.stat().st_mode & ~0o222)
    sync_tree(staged)
    receipt = verify_bundle(staged)
    try:
        os.rename(staged, destination)
    except OSError as error:
        if os.path.lexists(destination):
            raise _taken(destination) from error
        raise
    sync_folder(destination.parent)
    sync_folder(staged.parent)
    return receipt


def _taken(destination: Path) -> Conflict:
    return Conflict("something is there already; nothing was overwritten", source=destination)


def _qualified(store: Store, jobs: Jobs) -> dict[str, str]:
    """Make missing evidence; folder name -> message of every run that has none."""
    from .qualify import qualify_by_key  # Loads DuckDB, which publishing one prepared folder does without.

    rows = qualify_by_key(store, jobs=jobs).items()
    return {key: row.message or "no evidence" for key, row in rows if row.status == "refused"}


def _publications(store: Store, runs: Sequence[_Staged], viewers: bool, jobs: Jobs) -> Iterator[Publication]:
    """One publication per run, in order."""
    if is_apart(jobs, len(runs)):
        yield from side_by_side(_in_worker, runs, jobs, killed=_killed, begin=_begin, given=(store.path, viewers))
        return
    with _pages(viewers and bool(runs)) as pages:
        for run, fault in runs:
            yield _publish_or_refuse(store, run, fault, pages)


_worker: dict[str, Any] = {}
"""Of a process of its own: the store and what draws viewers, for as long as it lives."""


def _begin(store: Path, viewers: bool) -> None:
    pages = ExitStack()  # Never closed: it lives as long as the process.
    _worker.update(store=Store.open(store), stack=pages, pages=pages.enter_context(_pages(viewers)))


def _in_worker(staged: _Staged) -> Publication:
    return _publish_or_refuse(_worker["store"], *staged, _worker["pages"])


def _killed(staged: _Staged) -> Publication:
    return Publication(_name(staged[0]), "refused", message=KILLED)


@contextmanager
def _pages(wanted: bool) -> Iterator[Viewers | None]:
    if not wanted:
        yield None
        return
    from .pages.viewer import Viewers  # Loads DuckDB, the templates and the charts.

    with closing(Viewers()) as pages:
        yield pages


def _publish_or_refuse(store: Store, run: RunFolder, fault: str | None, pages: Viewers | None) -> Publication:
    try:
        if fault is not None:
            raise InputRefused(fault, code="no_evidence")
        if pages is None:
            return _publish(store, run, None, None)
        with store.scratch() as scratch:  # Drawn without the lock, so that others publish meanwhile.
            viewer = scratch / "viewer.html"
            message = _draw(pages, run.path, viewer)
            return _publish(store, run, viewer if message is None else None, message)
    except (PlanewiseError, OSError) as error:
        return Publication(_name(run), "refused", message=str(error))


def _publish(store: Store, run: RunFolder, viewer: Path | None, message: str | None) -> Publication:
    from .qualify import current_evidence

    destination = store.path / "bundles" / run.key
    with store.lock():
        if not run.path.is_dir():
            return _earlier(RunFolder(destination, published=True))
        if current_evidence(run.path) is None:
            remedy = "run publish again"
            raise InputRefused("its evidence is missing", source=run.path, code="no_evidence", remedy=remedy)
        if viewer is not None:
            os.replace(viewer, run.path / viewer.name)
        receipt = publish_folder(run.path, destination, run.run_id)
    return Publication(run.run_id, "published", str(destination), receipt.manifest_sha256, receipt, message)


def _draw(pages: Viewers, folder: Path, target: Path) -> str | None:
    """Why the run has no viewer, None when it has one: evidence is published without its picture, never the reverse."""
    from .pages.viewer import FAULTS
    from .qualify import current_evidence

    try:
        pages.write(folder, current_evidence(folder) or {}, target)
    except FAULTS as error:
        return f"has no viewer.html: {str(error).strip().partition(chr(10))[0]}"
    return None


def _earlier(run: RunFolder) -> Publication:
    """What its manifest says. Verify tells whether it is sound; where it is damaged, the planes name the run."""
    try:
        manifest, digest = read_manifest(run.path)
        return Publication(manifest.run_id, "already_published", str(run.path), digest)
    except PlanewiseError:
        known = Publication(_name(run), "already_published", str(run.path))
    try:
        return replace(known, manifest_sha256=hashlib.sha256((run.path / MANIFEST).read_bytes()).hexdigest())
    except OSError as error:
        return replace(known, status="refused", message=f"{run.path / MANIFEST}: cannot be read: {error.strerror}")


def _name(run: RunFolder) -> str:
    try:
        return run.run_id
    except PlanewiseError:
        return run.key
