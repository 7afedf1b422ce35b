"""Reader of the recorder's capture folders, ``planewise/capture/1``.

A capture without a terminal record was interrupted: its rows are kept and the fact is noted. Everything else that does
not add up - a missing or damaged shard, another run's shard, a value its plane does not allow - refuses the capture.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..recorder.errors import InputRefused
from ..recorder.families import FAMILIES, HEADER_NAME, TERMINAL_NAME
from .capture_folder import UNFINISHED_HEADER, CaptureFolder, open_folder
from .contract import IssueLog, PlaneBatch, widen
from .run_metadata import run_batch
from .shards import read_shard, shard_rows, shard_seq
from .source import source_digest
from .spans import SpanJoin
from .strict_json import BadRecord


class CaptureReader:
    """Reads the recorder's captures."""

    name = "capture"
    doc = "folder of a planewise recorder, planewise/capture/1"

    def detect(self, path: Path) -> bool:
        """True for a folder with a header, one whose header was never finished, or with shards though it is gone."""
        if not path.is_dir():
            return False
        if (path / HEADER_NAME).exists() or (path / UNFINISHED_HEADER).exists():
            return True
        return any(next(path.glob(f"{family}-*.parquet"), None) for family in FAMILIES)

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes of the capture, then what was noted about it, then the run row."""
        path = Path(path)
        issues = IssueLog()
        capture = open_folder(path, issues)
        _check_completeness(capture, issues)
        for family in FAMILIES:
            if family not in ("spans_start", "spans_end"):
                yield from _plane(capture, family, issues)
        yield from _spans(capture, issues)
        yield from issues.batches(capture.header.run.run_id)
        yield _run(capture)


def _run(capture: CaptureFolder) -> PlaneBatch:
    header, terminal = capture.header, capture.terminal
    return run_batch(
        header.run,
        path=capture.path,
        schema=header.format,
        source_format=CaptureReader.name,
        source_digest=source_digest(capture.path),
        producer=header.producer,
        outcome=terminal and terminal.outcome,
        terminal_timestamp_ns=terminal and terminal.timestamp_ns,
        failure_reason=terminal and terminal.reason,
    )


def _check_completeness(capture: CaptureFolder, issues: IssueLog) -> None:
    terminal = capture.terminal
    if terminal is None:
        message = "the capture has no terminal record: the recording process ended before it closed the session"
        issues.note(TERMINAL_NAME, "capture_interrupted", "warning", message)
        return
    for family in sorted(FAMILIES.keys() | terminal.rows.keys()):
        found = sum(map(shard_rows, capture.shards.get(family, ())))
        expected = terminal.rows.get(family, 0)
        if found != expected:
            raise InputRefused(
                f"the shards of {family} hold {found} rows, expected {expected} as {TERMINAL_NAME} says",
                source=capture.path,
                code="shard_missing",
                remedy="copy the whole folder again",
            )
    if terminal.lost_rows:
        message = f"{terminal.lost_rows} recorded rows could not be written and are lost"
        issues.note(TERMINAL_NAME, "rows_lost", "data_loss", message)


def _plane(capture: CaptureFolder, family: str, issues: IssueLog) -> Iterator[PlaneBatch]:
    for table in _tables(capture, family, issues):
        if family == "attachments":
            table = _present_attachments(capture, table, issues)
        if table.num_rows:
            yield PlaneBatch(family, widen(family, table))


def _tables(capture: CaptureFolder, family: str, issues: IssueLog) -> Iterator[Any]:
    """The rows of a family in ``seq`` order: streamed when the shards are in order, as one recorder writes them."""
    shards = capture.shards.get(family, [])
    run_id = capture.header.run.run_id
    tables = (table for shard in shards for table in read_shard(shard, family, run_id, issues))
    if _in_order(shards):
        yield from tables
    else:
        yield pa.concat_tables(tables).sort_by("seq")


def _in_order(shards: list[Path]) -> bool:
    last = -1
    for shard in shards:
        seq = shard_seq(shard)
        if len(seq) == 0:
            continue
        values = seq.combine_chunks()
        if values[0].as_py() is None or values[0].as_py() <= last:
            return False
        if not pc.all(pc.less(values[:-1], values[1:]), min_count=0).as_py():
            return False
        last = values[-1].as_py()
    return True


def _spans(capture: CaptureFolder, issues: IssueLog) -> Iterator[PlaneBatch]:
    """Start rows joined with end rows. An end whose start was never written is lost data, where data may be lost."""
    join = SpanJoin()
    may_lose = capture.terminal is None or capture.terminal.lost_rows > 0
    lost = 0
    for table in _tables(capture, "spans_start", issues):
        for row in zip(*_lists(table, "id", "start_ns"), strict=True):
            _joined(capture, "spans_start", join.start, row)
        join.add_rows(widen("spans", table))
    for table in _tables(capture, "spans_end", issues):
        for row in zip(*_lists(table, "id", "duration_ns", "seq"), strict=True):
            if may_lose and row[0] not in join:
                lost += 1
            else:
                _joined(capture, "spans_end", join.end, row)
    if lost:
        issues.note(
            "spans_end", "span_end_without_start", "data_loss", f"{lost} span ends have no start and were left out"
        )
    yield from join.batches()


def _lists(table: Any, *names: str) -> list[list[Any]]:
    return [table.column(name).to_pylist() for name in names]


def _joined(capture: CaptureFolder, family: str, action: Callable[..., None], row: tuple[Any, ...]) -> None:
    try:
        action(*row)
    except BadRecord as fault:
        position = f"{family}, column {fault.field}"
        raise InputRefused(fault.message, source=capture.path, position=position, code=fault.code) from None


def _present_attachments(capture: CaptureFolder, table: Any, issues: IssueLog) -> Any:
    """The rows whose file is there as recorded. A finished capture must have them all; an interrupted one may not."""
    keep = [_is_present(capture, issues, *row) for row in zip(*_lists(table, "path", "bytes", "sha256"), strict=True)]
    return table.filter(pa.array(keep, pa.bool_()))


def _is_present(capture: CaptureFolder, issues: IssueLog, name: str, size: int, sha256: str) -> bool:
    if any(part in ("", ".", "..") for part in name.split("/")) or set(name) & set("\\\0"):
        message = f"found {name!r}, expected a path inside the capture"
        raise InputRefused(message, source=capture.path, position="attachments, column path", code="unsafe_path")
    file = capture.path / name
    same = _is_file_with(file, size, sha256) and file.resolve().is_relative_to(capture.path.resolve())
    if not same and capture.terminal is not None:
        message = f"is missing or not the file that was attached ({size} bytes, sha256 {sha256})"
        raise InputRefused(message, source=file, code="attachment_mismatch", remedy="copy the whole folder again")
    if not same:
        issues.note(
            name, "attachment_lost", "data_loss", "the attached file is missing or changed; its row was left out"
        )
    return same


def _is_file_with(file: Path, size: int, sha256: str) -> bool:
    try:
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return stream.tell() == size and digest == sha256
    except OSError:
        return False
