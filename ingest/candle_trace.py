"""Reader of candle-graph traces, ``candle-graph/trace/10`` and ``/9``, as JSONL or gzipped JSONL (protocol part 1).

Our own protocol is refused, never repaired: one broken record refuses the run, with its physical line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..recorder.errors import InputRefused
from .ahead import work_ahead
from .contract import PlaneBatch
from .lines import check_encoding, is_blank, peek, plain_text, read_blocks
from .run_metadata import run_batch
from .source import source_digest
from .trace_events import SCHEMAS, Terminal
from .trace_rows import read_rows
from .trace_scan import TraceScan, unsupported_schema

_PEEK = 1 << 16
_THREADS = 3  # Two cores are full with three: a part of the work holds the interpreter's lock.
# No record opens with an array; documents of other tools that hold "kind" somewhere inside do.
_RECORD = re.compile(rb"""\A\s*\{(?!\s*"[^"\n]*"\s*:\s*\[)[^\n]*"kind"\s*:""")
_SCHEMA = re.compile(rb"""\A\s*\{[^\n]*"schema"\s*:\s*"candle-graph/(trace|runtime)/""")


class CandleTraceReader:
    """Reads candle-graph traces."""

    name = "candle-trace"
    doc = "candle-graph trace, JSONL, schema candle-graph/trace/10 or /9"

    def detect(self, path: Path) -> bool:
        """True for a file whose first line is, as far as it can be seen, a record with a ``kind``."""
        if not path.is_file():
            return False
        head = plain_text(peek(path, _PEEK))
        return bool(_SCHEMA.match(head) or (_RECORD.match(head) and b'"traceEvents"' not in head))

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes of the trace; spans come last but one, the run row last.

        Raises :class:`InputRefused` for the first broken rule of protocol 1.3, and :class:`IncompatibleInput` for
        another schema.
        """
        path = Path(path)
        if path.is_dir():
            raise InputRefused("is a folder, expected a trace file", source=path, code="not_a_file")
        check_encoding(path)
        scan = TraceScan(path)
        for rows in work_ahead(read_rows, read_blocks(path), _THREADS):
            yield from scan.feed(rows)
        yield from _finish(scan)


def _finish(scan: TraceScan) -> Iterator[PlaneBatch]:
    """The rules about the whole stream, in the order of protocol 1.3 (7 to 13), then the joined planes."""
    meta, terminal = scan.meta, scan.terminal
    if meta is None and not scan.record_count:
        raise _nothing(scan.path)
    if meta is None:
        raise _whole(scan, "meta_missing", "found no meta record, expected one as the first record")
    if terminal is None:
        raise _whole(scan, "terminal_missing", "found no terminal record, expected one as the last record")
    if meta.schema not in SCHEMAS:
        raise unsupported_schema(scan.path, meta.schema, scan.last_line)
    if meta.schema == SCHEMAS[1] and scan.has_tensor_stats:
        raise _whole(scan, "tensor_stats_in_trace_9", f"found tensor_stats in a {meta.schema}, which has none")
    _check_terminal(scan, terminal)
    yield from scan.spans.batches()
    yield run_batch(
        meta,
        path=scan.path,
        schema=meta.schema,
        source_format=CandleTraceReader.name,
        source_digest=source_digest(scan.path),
        outcome=terminal.outcome,
        terminal_timestamp_ns=terminal.timestamp_ns,
        failure_reason=scan.reason,
    )


def _check_terminal(scan: TraceScan, terminal: Terminal) -> None:
    if terminal.outcome == "complete" and scan.reason is not None:
        raise _whole(scan, "complete_with_reason", "the outcome is complete and has a reason, expected none")
    if terminal.outcome == "failed" and is_blank(scan.reason or ""):
        raise _whole(scan, "failed_without_reason", "the outcome is failed without a reason, expected one")
    if terminal.timestamp_ns < scan.latest_ns:
        message = (
            f"terminal timestamp_ns is {terminal.timestamp_ns}, expected at least {scan.latest_ns}, the latest evidence"
        )
        raise _whole(scan, "terminal_precedes_evidence", message)


def _nothing(path: Path) -> InputRefused:
    size = path.stat().st_size
    if size == 0:
        found = "the file is empty"
    else:
        found = "holds only blank lines" if peek(path, 1) else f"the compressed file ({size} bytes) is empty"
    return InputRefused(
        f"{found}, expected a meta record as the first line",
        source=path,
        position="line 1",
        code="meta_missing",
        remedy="copy it again; if the original is empty too, nothing was recorded: record the run again",
    )


def _whole(scan: TraceScan, code: str, message: str) -> InputRefused:
    """A refusal about the stream as a whole; it names the last line."""
    remedy = "the recording did not finish; record it again" if code == "terminal_missing" else None
    return InputRefused(message, source=scan.path, position=f"line {scan.last_line}", code=code, remedy=remedy)
