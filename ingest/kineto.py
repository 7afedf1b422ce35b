"""Reader of PyTorch profiler (Kineto) traces and of other traces in the Chrome trace event format.

See docs/formats/kineto.md for every rule. One pass decodes the events in chunks and spills rows; then, with the base of
the times, the links between host events and the digest known, the rows are completed and yielded.
"""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from ..recorder.errors import InputRefused
from .contract import IssueLog, PlaneBatch
from .foreign import foreign_run_id
from .kineto_collect import Collector
from .kineto_finish import Finish
from .kineto_run import base_ns, note_issues, run_row
from .kineto_spill import Spill
from .kineto_stream import EventStream
from .source import source_digest, source_name
from .streams import head

_HEAD_BYTES = 1 << 16
_LONG_HEAD_BYTES = 1 << 23
_KEYED = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\{\s*\"")
_BARE = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*\[\s*\{")
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_PHASE = re.compile(rb'"ph"\s*:\s*"')
_TEXT_TIME = re.compile(rb'"ts"\s*:\s*"')
_OTHER = re.compile(rb'"(?:nodes|\$schema|rocprofiler-sdk-tool)"\s*:')


class KinetoReader:
    """Reads PyTorch profiler traces; ``python_functions`` keeps the frames of with_stack as spans."""

    name = "kineto"
    doc = "PyTorch profiler (Kineto) or other Chrome trace events, JSON, plain, gzip or zstd"

    def __init__(self, *, python_functions: bool = False) -> None:
        self._python_functions = python_functions

    def detect(self, path: Path) -> bool:
        """True for an object with an array traceEvents near its start, or an array of objects with ``ph``.

        An array whose times are text is Ascend's, not this.
        """
        if not path.is_file():
            return False
        start = head(path, _HEAD_BYTES)
        if _BARE.match(start):
            return bool(_PHASE.search(start)) and not _TEXT_TIME.search(start)
        if not _KEYED.match(start):
            return False
        if _EVENTS.search(start):
            return True
        return not _OTHER.search(start) and bool(_EVENTS.search(head(path, _LONG_HEAD_BYTES)))

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes of the trace, its run row last.

        Raises :class:`InputRefused` for what holds no array of events, or nothing that is one.
        """
        path = Path(path)
        if path.is_dir():
            raise InputRefused("is a folder, expected a trace file", source=path, code="not_a_file")
        with Spill() as spill, _digesting(path) as digest:
            stream, collector = (
                EventStream(path),
                Collector(source_name(path), spill, python_functions=self._python_functions),
            )
            try:
                _collect(stream, collector)
            except OSError as error:
                raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
            yield from _finished(path, stream, collector, spill, digest.result())


@contextlib.contextmanager
def _digesting(path: Path) -> Iterator[Future[str]]:
    """Digest the file on another thread meanwhile; it holds no interpreter lock."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(source_digest, path)


def _collect(stream: EventStream, collector: Collector) -> None:
    """Take in all events, with the cyclic collector off: decoded events hold no cycles and are many."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        for chunk in stream.chunks():
            collector.add(chunk)
            del chunk
        collector.finish()
    finally:
        if collecting:
            gc.enable()


def _finished(path: Path, stream: EventStream, collector: Collector, spill: Spill, digest: str) -> Iterator[PlaneBatch]:
    """Complete the spilled rows, then issues, the ledger and the run."""
    if not collector.events:
        raise InputRefused("traceEvents holds no event", source=path, code="no_events")
    run_id = foreign_run_id(path, digest)
    finish = Finish(run_id, base_ns(stream.metadata), collector, spill)
    yield from finish.batches()
    log = IssueLog()
    note_issues(log, source_name(path), stream.damages, collector.unknown)
    yield from log.batches(run_id)
    yield from collector.ledger.batches(run_id)
    found = {"link_keys": finish.link_keys, "device": finish.only_device, "data_lost": stream.lost}
    yield run_row(path, run_id, digest, stream.metadata, **found).batch(path, spill.rows)
