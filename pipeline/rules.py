"""Rules of a store that its user may replace: classes of device work, and which spans mark a step.

They are data. A store has the built-in ones until its user loads others from CSV; then these alone are in force.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from ..recorder.errors import InputRefused
from .fsio import sync_folder, write_atomic
from .store import Store
from .tables import TABLES

IN_FORCE = {"device_classes": "device_class_rules", "step_markers": "step_marker_rules"}
"""The tables that take rules, and the views that show the rules in force."""

_LOADED = "loaded.parquet"


def load_rules(store: Store, table: str, source: Path) -> int:
    """Put the rules of a CSV file with a header in force, in place of all others; returns how many there are.

    An empty cell is NULL. Raises :class:`InputRefused`, naming the line, for a file without rules, with other columns
    than those of ``table``, or with a cell that is none of its column's kind; the store is then as it was.
    """
    rows = _checked(_parsed(table, source), table, source)
    content = pa.BufferOutputStream()
    pq.write_table(rows, content)
    with store.lock():
        write_atomic(store.path / "tables" / table / _LOADED, content.getvalue().to_pybytes())
    store.share_documents()
    return int(rows.num_rows)


def reset_rules(store: Store, table: str) -> None:
    """Put the built-in rules in force again."""
    folder = store.path / "tables" / table
    with store.lock():
        (folder / _LOADED).unlink(missing_ok=True)
        sync_folder(folder)
    store.share_documents(gone=f"tables/{table}/{_LOADED}")


def _parsed(table: str, source: Path) -> Any:
    schema = TABLES[table].schema
    options = csv.ConvertOptions(
        column_types={field.name: field.type for field in schema},
        strings_can_be_null=True,
        null_values=[""],
    )
    try:
        return csv.read_csv(source, convert_options=options)
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=source, code="unreadable") from None
    except pa.ArrowException as error:
        raise _refused(source, table, str(error)) from None


def _checked(rows: Any, table: str, source: Path) -> Any:
    schema = TABLES[table].schema
    if sorted(rows.column_names) != sorted(schema.names):
        raise _refused(source, table, f"found the columns {', '.join(rows.column_names)}")
    if not rows.num_rows:
        raise _refused(source, table, "found no rule below the header")
    for field in schema:
        column = rows.column(field.name)
        if not field.nullable and column.null_count:
            line = column.to_pylist().index(None) + 2
            raise _refused(source, table, f"line {line}: {field.name} is empty")
    return rows.select(schema.names).cast(schema)


def _refused(source: Path, table: str, found: str) -> InputRefused:
    columns = ",".join(TABLES[table].schema.names)
    return InputRefused(
        f"holds no rules for {table}: {found}",
        source=source,
        code="rules_invalid",
        remedy=f"expected CSV with the header {columns}; planewise rules {table} --format csv prints such rules",
    )
