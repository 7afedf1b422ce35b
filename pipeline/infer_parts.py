"""One part of an inference artifact: Parquet files with the rows of planes, written whole before it counts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..recorder.infer_base import CorrelationContext
from ..recorder.planes import PLANES
from .fsio import sync_file, sync_folder
from .infer_attachments import copy_measured
from .infer_rows import ENGINE_COLUMNS

GROUP_ROWS = 1 << 15


def write_part(
    folder: Path,
    number: int,
    seq: int,
    run_id: str,
    activities: list[Any],
    events: list[Any],
    contexts: dict[str, CorrelationContext],
    envelope: list[dict[str, Any]],
    copies: dict[str, Path],
) -> tuple[int, int]:
    """Write the part and copy its traces; gives the ``seq`` after its last row, and its rows of ``engine_events``.

    Rows are numbered from ``seq`` on: definitions of contexts, the envelope, events, activities. Raises ``OSError``.
    """
    temporary = folder / "tmp" / f"{number:08}"
    temporary.mkdir(parents=True)
    for row in envelope:
        if row.get("storage") == "copy":
            copy_measured(copies[row["path"]], folder / row["path"], row["bytes"], row["sha256"])
    own = [_about(name, row) for name, row in _definitions(contexts, envelope)]
    tables = [_of_rows(own), *events] if own else events
    written = sum(table.num_rows for table in tables)
    _write(temporary / "engine_events.parquet", "engine_events", run_id, seq, tables)
    _write(temporary / "activities.parquet", "activities", run_id, seq + written, activities)
    sync_folder(temporary)
    target = folder / "parts" / f"{number:08}"
    shutil.rmtree(target, ignore_errors=True)  # The remains of a writer that was killed before it counted.
    os.rename(temporary, target)
    sync_folder(folder / "parts")
    return seq + written + sum(table.num_rows for table in activities), written


def _definitions(contexts: dict[str, CorrelationContext], envelope: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, context in contexts.items():
        values = {field: getattr(context, field) for field in context.__dataclass_fields__}
        found.append(("infer.context", {"event_id": name, "context_id": name, "context": values}))
    for row in envelope:
        kind = "attachment" if "attachment_id" in row else "session"
        found.append((f"envelope.{kind}", {"event_id": row[f"{kind}_id"], **row}))
    return found


def _about(event_type: str, row: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in row.items() if name != "event_id"}
    text = json.dumps(rest, ensure_ascii=False, sort_keys=True)
    return {"event_type": event_type, "event_id": row["event_id"], "attributes": text}


def _of_rows(rows: list[dict[str, Any]]) -> Any:
    return pa.Table.from_pylist(rows, schema=pa.schema(list(ENGINE_COLUMNS)))


def _write(path: Path, plane: str, run_id: str, seq: int, tables: list[Any]) -> None:
    if not tables:
        return
    schema = PLANES[plane].schema
    # A dictionary of ids that are all different only costs.
    repeated = [name for name in schema.names if name not in ("seq", "event_id", "activity_id", "start_ns")]
    with pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, use_dictionary=repeated) as writer:
        for group in _groups(tables):
            parts = []
            for table in group:
                parts.append(_completed(table, schema, run_id, seq))
                seq += table.num_rows
            writer.write_table(pa.concat_tables(parts))
    sync_file(path)


def _groups(tables: list[Any]) -> Iterator[list[Any]]:
    """Tables of about ``GROUP_ROWS`` rows together: one row group."""
    group: list[Any] = []
    for table in tables:
        group.append(table)
        if sum(part.num_rows for part in group) >= GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


def _completed(table: Any, schema: Any, run_id: str, seq: int) -> Any:
    """The table with all columns of its plane, rows numbered from ``seq`` on."""
    given = {"run_id": pa.repeat(run_id, table.num_rows), "seq": pa.array(np.arange(seq, seq + table.num_rows))}
    given |= {name: table.column(name).cast(schema.field(name).type) for name in table.column_names}
    columns = [given.get(field.name, pa.nulls(table.num_rows, field.type)) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)
