"""The one way rows and documents leave the command line: table, json, csv or ndjson on standard output."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any, TextIO

import duckdb
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..recorder.errors import UsageError
from .fsio import write_atomic

TABLE_ROWS = 50
"""Rows that the table format shows; what it leaves out is said below the table."""

_INT64_MAX = 2**63 - 1
_Exact = Callable[[Any], Any]
"""Makes decimal strings of the wide numbers in a value."""
_CSV_SPECIAL = frozenset(',"\r\n')


class OutputFormat(StrEnum):
    """How rows are written: ``table`` for people, the other three for programs."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    NDJSON = "ndjson"


@dataclass(frozen=True)
class Rows:
    """Rows on their way out: the column names, and the values row by row (consumed once)."""

    columns: Sequence[str]
    values: Iterable[Sequence[Any]]

    @classmethod
    def of(cls, records: Sequence[dict[str, Any]], columns: Sequence[str] | None = None) -> Rows:
        """Rows from dictionaries; the columns are those of the first record when not given."""
        names = list(columns if columns is not None else (records[0] if records else ()))
        return cls(names, [[record.get(name) for name in names] for record in records])

    @classmethod
    def fetch(cls, con: duckdb.DuckDBPyConnection, batch: int = 10_000) -> Rows:
        """Rows of the statement that ``con`` has just executed, fetched in batches.

        128-bit integers and decimals become decimal strings, so that no reader rounds them; those in a list, struct
        or map too.
        """
        described = con.description or []
        return cls([item[0] for item in described], _fetched(con, [_exact(item[1]) for item in described], batch))


def write_rows(rows: Rows, format_: OutputFormat, stream: TextIO | None = None, *, title: str | None = None) -> None:
    """Write rows in one format; an empty result still has its columns in table and csv."""
    out = stream or sys.stdout
    _WRITERS[format_](rows, out, title)


def write_document(document: dict[str, Any], output: Path | None = None) -> None:
    """Write one JSON document, pretty-printed with a final newline, to ``output`` or to standard output."""
    text = to_json(document, indent=1) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(output, text.encode())
        print(f"wrote {output}", file=sys.stderr)


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON text: no NaN, integers beyond 64 bits as decimal strings."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """The JSON value of a result value: bytes as hex, decimals and wide integers as strings, no NaN."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -_INT64_MAX - 1 <= value <= _INT64_MAX else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case bytes():
            return value.hex()
        case Decimal() | datetime() | date() | time() | timedelta():
            return str(value)
    return str(value)


def printable(text: str) -> str:
    """Text with control characters escaped, safe for one line of a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def stdout_console(stream: TextIO | None = None) -> Console:
    """A console for tables; wide enough not to cut cells when the output is no terminal."""
    out = stream or sys.stdout
    return Console(file=out, width=None if out.isatty() else 200, highlight=False)


def _fetched(con: duckdb.DuckDBPyConnection, exact: Sequence[_Exact | None], batch: int) -> Iterator[Sequence[Any]]:
    while block := con.fetchmany(batch):
        if not any(exact):
            yield from block
            continue
        for row in block:
            yield [value if one is None else one(value) for value, one in zip(row, exact, strict=True)]


def _exact(type_: Any) -> _Exact | None:
    """What makes decimal strings of the wide numbers in a value of a DuckDB type; None when it can hold none."""
    if type_.id in ("hugeint", "uhugeint", "decimal"):
        return lambda value: None if value is None else str(value)
    if type_.id not in ("list", "array", "struct", "tuple", "map", "union"):
        return None
    parts = [_exact(part) for _, part in type_.children if isinstance(part, type(type_))]
    if not any(parts):
        return None
    return lambda value: None if value is None else _exact_parts(type_.id, value, parts)


def _exact_parts(kind: str, value: Any, parts: list[_Exact | None]) -> Any:
    if kind == "union":  # The value does not say which member it is.
        return str(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value
    if kind == "map":
        of_key, of_value = parts
        return {_apply(of_key, key): _apply(of_value, item) for key, item in value.items()}
    if isinstance(value, dict):
        return {name: _apply(part, item) for part, (name, item) in zip(parts, value.items(), strict=True)}
    return [_apply(part, item) for part, item in zip(cycle(parts), value, strict=False)]


def _apply(exact: _Exact | None, value: Any) -> Any:
    return value if exact is None else exact(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else to_json(value).strip('"')


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return "-" if value is None else _cell(value)


def _write_table(rows: Rows, out: TextIO, title: str | None) -> None:
    values = iter(rows.values)
    shown = list(islice(values, TABLE_ROWS))
    numeric = [_is_numeric(column) for column in zip(*shown, strict=True)] if shown else [False] * len(rows.columns)
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False)
    for name, right in zip(rows.columns, numeric, strict=True):
        table.add_column(printable(name), justify="right" if right else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text(printable(_shown(value))) for value in row))
    console = stdout_console(out)
    console.print(table)
    rest = sum(1 for _ in values)
    if rest:
        console.print(f"{len(shown)} of {len(shown) + rest} rows shown; --format csv, json or ndjson gives all")


def _is_numeric(column: Sequence[Any]) -> bool:
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in column)


def _check_names(rows: Rows) -> None:
    """A JSON object holds each name once; rows that would lose a column are refused before any is written."""
    twice = sorted({name for name in rows.columns if list(rows.columns).count(name) > 1})
    if twice:
        raise UsageError(
            f"several columns are named {', '.join(twice)}, and a JSON object holds a name once",
            code="duplicate_column",
            remedy="name the columns with AS, or use --format csv",
        )


def _write_json(rows: Rows, out: TextIO, title: str | None) -> None:
    _check_names(rows)
    lines = (to_json(dict(zip(rows.columns, row, strict=True))) for row in rows.values)
    first = next(lines, None)
    if first is None:
        out.write("[]\n")
        return
    out.write("[" + first)
    for line in lines:
        out.write(",\n " + line)
    out.write("]\n")


def _write_ndjson(rows: Rows, out: TextIO, title: str | None) -> None:
    _check_names(rows)
    for row in rows.values:
        out.write(to_json(dict(zip(rows.columns, row, strict=True))) + "\n")


def _write_csv(rows: Rows, out: TextIO, title: str | None) -> None:
    for row in chain([rows.columns], rows.values):
        out.write(",".join(map(_csv_cell, row)) + "\n")


def _csv_cell(value: Any) -> str:
    """One cell: nothing for NULL, and quotes around an empty text, which the csv module writes alike."""
    text = _cell(value)
    if value is None or (text and not _CSV_SPECIAL.intersection(text)):
        return text
    return '"' + text.replace('"', '""') + '"'


_WRITERS: dict[OutputFormat, Callable[[Rows, TextIO, str | None], None]] = {
    OutputFormat.TABLE: _write_table,
    OutputFormat.JSON: _write_json,
    OutputFormat.CSV: _write_csv,
    OutputFormat.NDJSON: _write_ndjson,
}
