"""Reads one shard of a capture, believing nothing in it: schema, run, values and vocabularies are checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..recorder.errors import IncompatibleInput, InputRefused
from ..recorder.families import FAMILIES
from ..recorder.planes import PLANE_VERSION
from .contract import IssueLog
from .domains import INTERVALS, Fault, column_faults, interval_fault, tensor_stats_fault

BATCH_ROWS = 50_000

_SPAN_FAMILIES = frozenset({"spans_start", "spans_end"})


def read_shard(path: Path, family: str, run_id: str, issues: IssueLog) -> Iterator[Any]:
    """Yield the tables of a shard, at most BATCH_ROWS rows each, with the columns of its family.

    Raises :class:`IncompatibleInput` for another plane version, :class:`InputRefused` when the file is damaged, of
    another run, or holds a value that its plane does not allow. Unknown columns are left out and noted.
    """
    with _opened(path) as file:
        schema = _guarded(path, lambda: file.schema_arrow)
        _check_metadata(path, family, run_id, schema.metadata or {})
        columns = _columns(path, family, schema, issues)
        rows = 0
        batches = file.iter_batches(batch_size=BATCH_ROWS, columns=columns)
        while (found := _guarded(path, lambda: next(batches, None))) is not None:
            table = _conform(path, family, found)
            _check_rows(path, family, run_id, table, rows)
            rows += table.num_rows
            yield table


def shard_rows(path: Path) -> int:
    """The number of rows that the shard's footer states; raises :class:`InputRefused` for a damaged file."""
    with _opened(path) as file:
        return int(file.metadata.num_rows)


def shard_seq(path: Path) -> Any:
    """The column ``seq`` of a shard; raises :class:`InputRefused` for a damaged file."""
    with _opened(path) as file:
        return _guarded(path, lambda: file.read(columns=["seq"]).column("seq"))


def _opened(path: Path) -> Any:
    return _guarded(path, lambda: pq.ParquetFile(path, page_checksum_verification=True))


def _guarded(path: Path, action: Callable[[], Any]) -> Any:
    """Any fault in reading a shard refuses it: shards are renamed only when complete, so a broken one was damaged."""
    try:
        return action()
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputRefused(
            f"the shard is damaged: {reason}", source=path, code="shard_damaged", remedy="copy the capture again"
        ) from error


def _check_metadata(path: Path, family: str, run_id: str, metadata: dict[bytes, bytes]) -> None:
    found = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in metadata.items()}
    version = found.get("planewise.plane_version")
    if version != str(PLANE_VERSION):
        raise IncompatibleInput(
            f"found plane version {version}, this reader knows {PLANE_VERSION}",
            source=path,
            code="unsupported_version",
            remedy="ingest it with the planewise that recorded it, or upgrade this one",
        )
    for name, expected in (("planewise.plane", family), ("planewise.run_id", run_id)):
        if found.get(name) != expected:
            message = f"{name} is {found.get(name)!r}, expected {expected!r}"
            raise InputRefused(message, source=path, code="foreign_shard", remedy="remove files of other captures")


def _columns(path: Path, family: str, schema: Any, issues: IssueLog) -> list[str]:
    declared = FAMILIES[family].schema
    for field in declared:
        found = schema.field(field.name) if schema.names.count(field.name) == 1 else None
        if found is None or found.type != field.type:
            kind = "no such column" if found is None else str(found.type)
            raise InputRefused(
                f"found {kind}, expected {field.type}",
                source=path,
                position=f"column {field.name}",
                code="shard_schema",
            )
    for name in schema.names:
        if name not in declared.names:
            issues.note(
                path.name, "unknown_column", "warning", f"column {name!r} is not of this plane and was left out"
            )
    return list(declared.names)


def _conform(path: Path, family: str, found: Any) -> Any:
    schema = FAMILIES[family].schema

    def build() -> Any:
        columns = [found.column(name) for name in schema.names]
        table = pa.Table.from_arrays(columns, schema=schema)
        table.validate(full=True)  # Offsets inside bounds and text that is UTF-8.
        return table

    return _guarded(path, build)


def _check_rows(path: Path, family: str, run_id: str, table: Any, first_row: int) -> None:
    for row, code, column, message in _faults(family, run_id, table):
        position = f"row {first_row + row}, column {column}"
        raise InputRefused(message, source=path, position=position, code=code)


def _faults(family: str, run_id: str, table: Any) -> Iterator[Fault]:
    plane = "spans" if family in _SPAN_FAMILIES else family
    yield from column_faults(plane, table)
    foreign = pc.index(pc.not_equal(table.column("run_id"), run_id), value=True).as_py()
    if foreign >= 0:
        yield (
            foreign,
            "foreign_row",
            "run_id",
            f"found {table.column('run_id')[foreign].as_py()!r}, expected {run_id!r}",
        )
    if plane in INTERVALS and (fault := interval_fault(table, *INTERVALS[plane])):
        yield fault
    if plane == "tensor_stats" and (fault := tensor_stats_fault(table)):
        yield fault
    if plane == "edges":
        yield from _edge_faults(table)


def _edge_faults(table: Any) -> Iterator[Fault]:
    """A call edge needs its spans and duration, a data edge its tensors."""
    needed = {"call": ("from_span", "to_span", "host_duration_ns"), "data": ("from_tensor", "to_tensor")}
    for edge_kind, names in needed.items():
        of_kind = pc.equal(table.column("edge_kind"), edge_kind)
        for name in names:
            row = pc.index(pc.and_(of_kind, pc.is_null(table.column(name))), value=True).as_py()
            if row >= 0:
                yield row, "null_value", name, f"found NULL, expected a value in every {edge_kind} edge"
