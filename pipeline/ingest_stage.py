"""The stage ``ingest``: sources in, staged runs out; a refused source leaves nothing behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from ..ingest.base import READERS, Reader, detect_format, source_digest
from ..recorder.errors import Conflict, InputRefused, PlanewiseError, UsageError
from .fsio import sync_folder
from .progress import Progress
from .run_folder import is_regular
from .side_by_side import KILLED, Jobs, is_apart, side_by_side
from .staging import AS_IT_IS, ReadOptions, StagedRun, stage_source
from .store import Store, run_key

_NOT_APPLIED = "what was asked for beside the source was not applied; planewise discard the run first"
_STORE_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


@dataclass(frozen=True)
class IngestResult:
    """What became of one source.

    ``status`` is ingested, unchanged (the store has this content already) or refused. ``run_id``, ``format`` and
    ``rows`` (rows per plane) are None where they are not known; ``code`` and ``message`` say why it was refused.
    ``digest`` is that of the source, None unless it was ingested now.
    """

    source: str
    status: str
    run_id: str | None = None
    format: str | None = None
    rows: dict[str, int] | None = None
    code: str | None = None
    message: str | None = None
    digest: str | None = None


def ingest_sources(
    store: Store,
    sources: Sequence[str | Path],
    *,
    format: str | None = None,
    options: ReadOptions = AS_IT_IS,
    jobs: Jobs = 1,
    progress: Progress | None = None,
) -> list[IngestResult]:
    """Read every source into ``staging/``; one result per source, in order, a folder of captures giving one per entry.

    ``format`` names the reader; by default the content decides. Ingesting a source twice changes nothing. Another
    content under a known run id is refused as a conflict. ``options`` is what
    the readers are asked for beside the sources. ``jobs`` processes read side by side; what they give is the same.
    Raises :class:`UsageError` for an unknown format and for an execution trace beside other than one source, and
    ``OSError`` when the store itself cannot be written; a refused source is a result and stops nothing.
    """
    if format is not None and format not in READERS:
        raise UsageError(f"no format {format!r}", remedy=f"use one of {', '.join(sorted(READERS))}")
    reader = None if format is None else READERS[format]
    expanded = [path for source in sources for path in _expand(Path(source), reader)]
    if options.execution_trace is not None and len(expanded) != 1:
        raise UsageError(
            f"an execution trace joins one Kineto trace, and {len(expanded)} sources are given",
            remedy="ingest that trace by itself",
        )
    known = _known_digests(store)
    tell = progress or (lambda done, total, what: None)
    coming = _results(store, expanded, format, options, jobs, known)
    results = []
    for done, source in enumerate(expanded):
        tell(done, len(expanded), source.name)
        results.append(next(coming))
    tell(len(expanded), len(expanded), "")
    return results


def _results(
    store: Store,
    sources: list[Path],
    format: str | None,
    options: ReadOptions,
    jobs: Jobs,
    known: dict[str, str],
) -> Iterator[IngestResult]:
    """One result per source, in order."""
    if not is_apart(jobs, len(sources)):
        for source in sources:
            result = _ingest_or_refuse(store, source, format, options, known)
            if result.status == "ingested" and result.digest is not None:
                known[result.digest] = str(result.run_id)
            yield result
        return
    work = partial(_ingest_apart, store.path, format, options, known)
    yield from side_by_side(work, sources, jobs, killed=_killed)


def _killed(source: Path) -> IngestResult:
    return IngestResult(str(source), "refused", code="process_killed", message=f"{source}: {KILLED}")


def _ingest_apart(
    store: Path, format: str | None, options: ReadOptions, known: dict[str, str], source: Path
) -> IngestResult:
    return _ingest_or_refuse(Store.open(store), source, format, options, known)


def _ingest_or_refuse(
    store: Store, source: Path, format: str | None, options: ReadOptions, known: dict[str, str]
) -> IngestResult:
    try:
        return _ingest(store, source, None if format is None else READERS[format], options, known)
    except PlanewiseError as error:
        return IngestResult(str(source), "refused", code=error.code, message=str(error))
    except (OSError, pa.ArrowException, ValueError, RecursionError) as error:
        if isinstance(error, OSError) and (error.errno in _STORE_FULL or _is_in(error.filename, store.path)):
            raise
        return IngestResult(str(source), "refused", code="unreadable", message=f"{source}: cannot be read: {error}")


def _is_in(filename: object, folder: Path) -> bool:
    """The fault is that of a file of the store, which is no fault of the source."""
    return isinstance(filename, str | os.PathLike) and Path(os.fspath(filename)).is_relative_to(folder)


def _ingest(
    store: Store, source: Path, reader: Reader | None, options: ReadOptions, known: dict[str, str]
) -> IngestResult:
    _refuse_place(source)
    reader = reader or detect_format(source)
    digest = source_digest(source)
    if digest in known:
        message = None if options == AS_IT_IS else _NOT_APPLIED
        return IngestResult(str(source), "unchanged", known[digest], reader.name, message=message)
    with store.scratch() as scratch:
        staged = stage_source(reader, source, scratch / "run", options=options)
        status = _place(store, staged, source)
    return IngestResult(str(source), status, staged.run_id, reader.name, staged.rows, digest=digest)


def _place(store: Store, staged: StagedRun, source: Path) -> str:
    """Rename a complete run into staging, unless the store knows the run; under the lock nobody comes between."""
    with store.lock():
        known = store.find(staged.run_id)
        if known is None:
            os.rename(staged.folder, store.path / "staging" / run_key(staged.run_id))
            sync_folder(store.path / "staging")
            return "ingested"
        if (known.run_id, known.source_digest) == (staged.run_id, staged.source_digest):
            return "unchanged"
    raise Conflict(
        f"run id {staged.run_id!r} is in the store with other content ({known.source_digest}, "
        f"this source has {staged.source_digest})",
        source=source,
        remedy="a run id names one recording: give the other one its own id, or planewise discard the staged one",
    )


def _known_digests(store: Store) -> dict[str, str]:
    """Source digest -> run id of every run of the store; a run that cannot be read is met again when its id comes."""
    known = {}
    for run in [*store.staged(), *store.held()]:
        try:
            known[run.source_digest] = run.run_id
        except InputRefused:
            continue
    return known


def _expand(source: Path, reader: Reader | None) -> list[Path]:
    """The source itself, or what lies at any depth in a folder that is no source; hidden entries are not finished."""
    readers = READERS.values() if reader is None else [reader]
    found, pending, walked = [], [source], set[tuple[int, int]]()
    while pending:
        path = pending.pop()
        if path.is_dir() and not any(candidate.detect(path) for candidate in readers):
            entries = _entries(path, walked)
        else:
            entries = None
        if entries is None:
            found.append(path)
        else:
            pending += reversed(entries)
    return found or [source]


def _entries(folder: Path, walked: set[tuple[int, int]]) -> list[Path] | None:
    """What lies in a folder, in order; nothing in one walked before, by whatever links, and None for one to refuse."""
    if any((folder / name).exists() for name in ("bundle.json", "store.json", "evidence.json", "nsight")):
        return None
    try:
        place = folder.stat()
        if (place.st_dev, place.st_ino) in walked:
            return []
        walked.add((place.st_dev, place.st_ino))
        return sorted(child for child in folder.iterdir() if not child.name.startswith("."))
    except OSError:
        return None


def _refuse_place(source: Path) -> None:
    """Refuse what is published already, or lies beside loose evidence that reading the trace would drop (13.1)."""
    folder = source if source.is_dir() else source.parent
    if any(is_regular(parent / "bundle.json") for parent in (folder, *folder.resolve().parents)):
        raise InputRefused(
            "is a published bundle or lies in one; a bundle is not ingested again",
            source=source,
            code="published_bundle",
            remedy="query or compare the bundle itself",
        )
    if (folder / "store.json").exists():
        raise InputRefused("is a store, expected a capture or a trace", source=source, code="is_a_store")
    loose = [name for name in ("evidence.json", "nsight") if (folder / name).exists()]
    if loose:
        raise InputRefused(
            f"found {' and '.join(loose)} beside it without a bundle.json",
            source=source,
            code="loose_evidence",
            remedy="move the trace away from the loose evidence",
        )
