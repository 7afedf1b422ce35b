"""``planewise export candle-trace``: a run as a candle-graph trace, which reads back as the same run (protocol 1)."""

from __future__ import annotations

import gzip
import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import duckdb
import msgspec

from ..ingest.run_metadata import RunMetadata
from ..ingest.trace_events import DEFAULTS, EDGE_KEYS, SCHEMAS, Edge, SpanStart
from ..ingest.trace_tables import PLANE_OF
from ..recorder.errors import InputRefused
from ..recorder.planes import PLANES
from .fsio import temporary_sibling

_META = tuple(field.name for field in msgspec.structs.fields(RunMetadata))
_AROUND = ("runs", "ingest_counts", "ingest_issues")
"""Planes about a run, which a trace says elsewhere or not at all."""
_BATCH = 8192

Line = tuple[int, int, dict[str, Any]]
"""Place in the source, place among the planes, the record."""


@dataclass(frozen=True)
class ExportedTrace:
    """``records`` were written; ``left_out`` names what the format has no place for, with how many values."""

    records: int
    left_out: dict[str, int]


def export_candle(con: duckdb.DuckDBPyConnection, run_id: str, output: Path) -> ExportedTrace:
    """Write the run ``run_id`` of ``con`` as ``candle-graph/trace/10``, gzipped when the name ends in ``.gz``.

    Records come in their order in the source. Raises :class:`InputRefused` for a run that no such trace can say: one
    without its metadata or its end, or with rows that lack what the format requires.
    """
    meta, terminal = _ends(con, run_id)
    left_out = _left_out(con, run_id)
    streams = [_rows(con, run_id, kind, place) for place, kind in enumerate(PLANE_OF)]
    streams.append(_span_ends(con, run_id, len(streams)))
    count = 0
    temporary = temporary_sibling(output)
    try:
        with _opened(temporary, packed=output.suffix == ".gz") as stream:
            for record in _all(meta, heapq.merge(*streams, key=lambda line: line[:2]), terminal):
                stream.write(json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n")
                count += 1
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
    return ExportedTrace(count, left_out)


def _opened(path: Path, *, packed: bool) -> IO[str]:
    return gzip.open(path, "wt", encoding="utf-8") if packed else path.open("w", encoding="utf-8")


def _all(meta: dict[str, Any], lines: Iterator[Line], terminal: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield meta
    for _, _, record in lines:
        yield record
    yield terminal


def _ends(con: duckdb.DuckDBPyConnection, run_id: str) -> tuple[dict[str, Any], dict[str, Any]]:
    columns = (*_META, "outcome", "terminal_timestamp_ns", "failure_reason")
    [values] = con.execute(f"SELECT {', '.join(columns)} FROM runs WHERE run_id = ?", [run_id]).fetchall()
    row = dict(zip(columns, values, strict=True))
    if row["outcome"] is None:
        raise _refused(run_id, "was interrupted, and a trace without its last record is none")
    ended = {"outcome": row.pop("outcome"), "timestamp_ns": row.pop("terminal_timestamp_ns")}
    reason = row.pop("failure_reason")
    meta = {name: value for name, value in row.items() if value is not None}
    meta["tags"] = dict(row["tags"] or {})
    for name in ("capture_contract", "comparison_identity"):
        if meta.get(name) is not None:
            meta[name] = _without_nulls(meta[name])
    try:
        msgspec.convert(meta, RunMetadata)
    except msgspec.ValidationError as error:
        raise _refused(run_id, f"lacks metadata that a trace must state: {error}") from None
    terminal = {"kind": "terminal", **ended} | ({} if reason is None else {"reason": reason})
    return {"kind": "meta", "schema": SCHEMAS[0], **meta}, terminal


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _left_out(con: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, int]:
    """Planes that the format does not have, and columns of the others, that hold something."""
    kinds = {plane: kind for kind, plane in PLANE_OF.items()}
    counts: dict[str, str] = {}
    for name, plane in PLANES.items():
        if name in kinds:
            known = {"run_id", "seq", "end_seq", "duration_ns", *kinds[name].__struct_fields__}
            counts |= {f"{name}.{column}": column for column in plane.column_names if column not in known}
        elif name not in _AROUND:
            counts[name] = "seq"
    found: dict[str, int] = {}
    for title, column in counts.items():
        query = f'SELECT count("{column}") FROM "{title.partition(".")[0]}" WHERE run_id = ?'
        [(count,)] = con.execute(query, [run_id]).fetchall()
        if count:
            found[title] = count
    return found


def _rows(con: duckdb.DuckDBPyConnection, run_id: str, kind: type[Any], place: int) -> Iterator[Line]:
    """The records of one kind; a column that is NULL is left out, which means the same where it may be."""
    names = kind.__struct_fields__
    required = set(names) - set(DEFAULTS.get(kind, {}))
    tag = kind.__struct_config__.tag
    for seq, *values in _fetched(con, f"seq, {', '.join(names)}", PLANE_OF[kind], run_id, "seq"):
        record = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        if kind is Edge:
            required = {"edge_kind", *EDGE_KEYS[record["edge_kind"]]}
        if missing := sorted(required - record.keys()):
            raise _refused(run_id, f"has a row of {PLANE_OF[kind]} (seq {seq}) without {', '.join(missing)}")
        if kind is SpanStart and record.get("measured") is None:
            record["measured"] = False
        yield seq, place, {"kind": tag, **record}


def _span_ends(con: duckdb.DuckDBPyConnection, run_id: str, place: int) -> Iterator[Line]:
    for seq, id_, duration_ns, start in _fetched(con, "end_seq, id, duration_ns, seq", "spans", run_id, "end_seq"):
        if duration_ns is None:
            continue
        if seq is None:
            raise _refused(run_id, f"does not say where its spans ended (span {id_!r:.60}, seq {start})")
        yield seq, place, {"kind": "span_end", "id": id_, "duration_ns": duration_ns}


def _fetched(con: duckdb.DuckDBPyConnection, columns: str, plane: str, run_id: str, order: str) -> Iterator[Any]:
    cursor = con.cursor()  # Each plane is read as the records are merged.
    cursor.execute(f'SELECT {columns} FROM "{plane}" WHERE run_id = ? ORDER BY {order} NULLS FIRST', [run_id])
    while rows := cursor.fetchmany(_BATCH):
        yield from rows
    cursor.close()


def _refused(run_id: str, message: str) -> InputRefused:
    return InputRefused(
        f"the run {run_id!r:.80} {message}",
        code="not_exportable",
        remedy="export parquet or export perfetto take any run",
    )
