"""The stage ``publish``: a staged run becomes an immutable bundle by one rename (protocol 9.3)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..recorder.errors import Conflict, InputRefused, PlanewiseError
from .bundle import MANIFEST, Receipt, verify_bundle, write_manifest
from .fsio import sync_folder, sync_tree, walk
from .manifest import read_manifest
from .progress import Progress
from .store import RunFolder, Store

if TYPE_CHECKING:
    from .pages.viewer import Viewers

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


def publish(store: Store, *, progress: Progress | None = None, viewers: bool = True) -> list[Publication]:
    """Publish every staged run, its evidence made first where it is missing, and list what was published before.

    One row per run of the store. With ``viewers`` each bundle gets a ``viewer.html`` (docs/report.md). A run that
    cannot be published stays staged, is reported, and stops no other. A crash at any point leaves a run staged or
    published whole; the next call goes on from there.
    """
    refused = _qualified(store)
    staged = store.staged()
    results: dict[str, Publication] = {}
    with _pages(staged if viewers else []) as pages:
        for done, run in enumerate(staged):
            if progress:
                progress(done, len(staged), run.key)
            results[run.key] = _publish_or_refuse(store, run, refused.get(run.key), pages)
    if progress:
        progress(len(staged), len(staged), "")
    earlier = {run.key: _earlier(run) for run in store.bundles() if run.key not in results}
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


def _qualified(store: Store) -> dict[str, str]:
    """Make missing evidence; folder name -> message of every run that has none."""
    from .qualify import qualify_by_key  # Loads DuckDB, which publishing one prepared folder does without.

    rows = qualify_by_key(store).items()
    return {key: row.message or "no evidence" for key, row in rows if row.status == "refused"}


@contextmanager
def _pages(staged: Sequence[RunFolder]) -> Iterator[Viewers | None]:
    if not staged:
        yield None
        return
    from .pages.viewer import Viewers  # Loads DuckDB, the templates and the charts.

    with closing(Viewers()) as pages:
        yield pages


def _publish_or_refuse(store: Store, run: RunFolder, fault: str | None, pages: Viewers | None) -> Publication:
    try:
        if fault is not None:
            raise InputRefused(fault, code="no_evidence")
        with store.lock():
            return _publish(store, run, pages)
    except (PlanewiseError, OSError) as error:
        return Publication(_name(run), "refused", message=str(error))


def _publish(store: Store, run: RunFolder, pages: Viewers | None) -> Publication:
    destination = store.path / "bundles" / run.key
    if not run.path.is_dir():
        return _earlier(RunFolder(destination, published=True))
    from .qualify import current_evidence

    packet = current_evidence(run.path)
    if packet is None:
        raise InputRefused("its evidence is missing", source=run.path, code="no_evidence", remedy="run publish again")
    message = None if pages is None else _write_viewer(pages, run.path, packet)
    receipt = publish_folder(run.path, destination, run.run_id)
    return Publication(run.run_id, "published", str(destination), receipt.manifest_sha256, receipt, message)


def _write_viewer(pages: Viewers, folder: Path, packet: dict[str, Any]) -> str | None:
    """Why the run has no viewer, None when it has one: evidence is published without its picture, never the reverse."""
    from .pages.viewer import FAULTS

    try:
        pages.write(folder, packet)
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
