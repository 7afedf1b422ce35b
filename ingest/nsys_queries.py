"""The queries that read an Nsight Systems export: one column list per role, faults of a row judged in SQL.

Every query scans its table in the order of the table (``NOT INDEXED``), so that the position of a row is its place in
the scan. A column that a table lacks is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .nsys_database import quoted
from .nsys_tables import PUSH_POP, START_END, STRINGS

NO_DEVICE = 2**31 - 1
"""``deviceId`` of work that has none (CUPTI writes INT_MAX)."""

_PLAIN_TIMES = """typeof("start") <> 'integer' OR typeof("end") <> 'integer' OR typeof("end" - "start") <> 'integer'"""
_WORK_FAULT = f"""CASE WHEN {_PLAIN_TIMES} THEN 'undecodable_record'
WHEN "start" = 0 AND "end" = 0 THEN 'no_timestamp'
WHEN "end" < "start" THEN 'negative_duration'
WHEN typeof("deviceId") <> 'integer' OR "deviceId" NOT BETWEEN 0 AND {NO_DEVICE - 1} THEN 'no_device'
WHEN typeof("streamId") <> 'integer' THEN 'no_stream' END"""
_CALL_FAULT = (
    f"""CASE WHEN {_PLAIN_TIMES} THEN 'undecodable_record' WHEN "end" < "start" THEN 'negative_duration' END"""
)
_RANGE_FAULT = """CASE WHEN typeof("start") <> 'integer' OR typeof("end") NOT IN ('integer', 'null')
OR typeof("end" - "start") NOT IN ('integer', 'null') THEN 'undecodable_record'
WHEN "end" < "start" THEN 'negative_duration' END"""

_RANGES = ", ".join(map(str, PUSH_POP + START_END))
_STACKED = ", ".join(map(str, PUSH_POP))


Tables = dict[str, tuple[str, ...]]
"""Columns by table."""

Owner = Callable[[str], str]
"""SQL for the process of a serialized process or thread id: :func:`pid` or :func:`process`."""


def work_query(table: str, tables: Tables, owner: Owner | None, nodes: Iterable[str] = ()) -> str:
    """Fault, start, duration, device, stream, context, correlation, its owner, process, three names, bytes, copy kind,
    graph. Ids are integers or NULL.

    ``owner`` is given where ids of several processes meet, so that an id needs its process. ``nodes`` are the tables
    that may hold the nodes of a graph whose replay is a row of this table.
    """
    shown = _Shown(tables[table])
    fields = (
        _with_nodes(shown, [node for node in nodes if "correlationId" in tables[node]], tables),
        '"start"',
        '"end" - "start"',
        '"deviceId"',
        '"streamId"',
        _integer(shown("contextId")),
        _id(shown("correlationId")),
        owner(shown("globalPid")) if owner else "NULL",
        pid(shown("globalPid")),
        *(shown(name) for name in ("demangledName", "shortName", "mangledName")),
        _natural(shown("bytes")),
        shown("copyKind"),
        _id(shown("graphId")),
    )
    return _scan(table, fields)


def call_query(table: str, columns: Sequence[str], owner: Owner | None) -> str:
    """Fault, start, duration, name, event class, process, thread, correlation, its owner."""
    shown = _Shown(columns)
    thread = shown("globalTid")
    fields = (
        _CALL_FAULT,
        '"start"',
        '"end" - "start"',
        '"nameId"',
        shown("eventClass"),
        pid(thread),
        _tid(thread),
        _id(shown("correlationId")),
        owner(thread) if owner else "NULL",
    )
    return _scan(table, fields)


def range_query(table: str, columns: Sequence[str]) -> str:
    """Fault, event type, start, duration, text, text id, process, thread, process key, domain."""
    shown = _Shown(columns)
    thread = shown("globalTid")
    fields = (
        _RANGE_FAULT if "end" in columns else _RANGE_FAULT.replace('"end"', "NULL"),
        '"eventType"',
        '"start"',
        f'{shown("end")} - "start"',
        _text(shown("text")),
        shown("textId"),
        pid(thread),
        _tid(thread),
        process(thread),
        shown("domainId"),
    )
    return _scan(table, fields)


def nesting_query(ranges: Sequence[tuple[str, int]], calls: Sequence[tuple[str, int]], tables: Tables) -> str | None:
    """Thread, end, seq, whether it encloses others: host records by thread and start, outer ones first.

    Tables come with the seq of their first row. None when no table says which thread its rows are of.
    """
    parts = [_nested(table, base, tables, True) for table, base in ranges if "globalTid" in tables[table]]
    parts += [_nested(table, base, tables, False) for table, base in calls if "globalTid" in tables[table]]
    if not parts:
        return None
    union = " UNION ALL ".join(parts)
    return f"SELECT thread, start, coalesce(end, start), seq, encloses FROM ({union}) ORDER BY 1, 2, 3 DESC, 4"


def _nested(table: str, base: int, tables: Tables, is_range: bool) -> str:
    shown = _Shown(tables[table])
    columns = f'"globalTid" AS thread, "start" AS start, {shown("end")} AS end'
    fault = _CALL_FAULT
    kept = "1"
    encloses = "0"
    if is_range:
        fault = _RANGE_FAULT if "end" in tables[table] else _RANGE_FAULT.replace('"end"', "NULL")
        kept = f'"eventType" IN ({_STACKED}) AND {_named(shown, tables)}'
        encloses = f"{shown('end')} IS NOT NULL"
    rows = f"row_number() OVER () + {base - 1} AS seq, {encloses} AS encloses"
    scanned = f"SELECT {columns}, {rows}, ({fault}) IS NULL AND ({kept}) AS kept FROM {quoted(table)} NOT INDEXED"
    return f"SELECT thread, start, end, seq, encloses FROM ({scanned}) WHERE kept AND typeof(thread) = 'integer'"


def _named(shown: _Shown, tables: Tables) -> str:
    """The range has a name: a range without one is no span, so it encloses nothing."""
    text = f"({_text(shown('text'))}) IS NOT NULL"
    if not {"id", "value"} <= set(tables.get(STRINGS, ())):
        return text
    looked_up = f"(SELECT s.value FROM {STRINGS} AS s WHERE s.id = {shown('textId')}) IS NOT NULL"
    return f"({text} OR {looked_up} OR typeof({shown('textId')}) = 'text')"


def processes_query(tables: Tables, wanted: Iterable[str]) -> str | None:
    """The processes of the rows that carry correlation ids; None when no table says."""
    parts = []
    for table in wanted:
        for column in ("globalPid", "globalTid"):
            if {column, "correlationId"} <= set(tables[table]):
                parts.append(f"SELECT {process(quoted(column))} AS process FROM {quoted(table)}")
                break
    return f"SELECT DISTINCT process FROM ({' UNION '.join(parts)}) WHERE process IS NOT NULL" if parts else None


def domains_query(table: str, columns: Sequence[str]) -> str | None:
    """Process, id, text and text id of the NVTX domains that were named; None when the table has none."""
    if not {"domainId", "globalTid"} <= set(columns):
        return None
    shown = _Shown(columns)
    fields = f'{process(quoted("globalTid"))}, "domainId", {_text(shown("text"))}, {shown("textId")}'
    return f'SELECT {fields} FROM {quoted(table)} NOT INDEXED WHERE "eventType" IN (75, 76)'


class _Shown:
    """Columns by name, NULL for those a table lacks."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = frozenset(columns)

    def __call__(self, name: str) -> str:
        return quoted(name) if name in self._columns else "NULL"


def _scan(table: str, fields: Iterable[str]) -> str:
    return f"SELECT {', '.join(fields)} FROM {quoted(table)} NOT INDEXED"


def process(column: str) -> str:
    """The process of a serialized id, with its machine: all but the low 24 bits, which are the thread."""
    return f"CASE WHEN typeof({column}) = 'integer' THEN {column} >> 24 END"


def pid(column: str) -> str:
    return f"CASE WHEN typeof({column}) = 'integer' THEN ({column} >> 24) & 16777215 END"


def _tid(column: str) -> str:
    return f"CASE WHEN typeof({column}) = 'integer' THEN {column} & 16777215 END"


def _integer(column: str) -> str:
    return "NULL" if column == "NULL" else f"CASE WHEN typeof({column}) = 'integer' THEN {column} END"


def _id(column: str) -> str:
    """An id; 0 means none."""
    return "NULL" if column == "NULL" else f"CASE WHEN typeof({column}) = 'integer' AND {column} <> 0 THEN {column} END"


def _natural(column: str) -> str:
    return f"CASE WHEN typeof({column}) = 'integer' AND {column} >= 0 THEN {column} END"


def _text(column: str) -> str:
    return f"CASE WHEN typeof({column}) = 'text' THEN {column} END"


def _with_nodes(shown: _Shown, nodes: Sequence[str], tables: Tables) -> str:
    """The fault of a graph's row: with its nodes recorded too, the graph as a whole would count them twice."""
    if not nodes or shown("correlationId") == "NULL":
        return _WORK_FAULT
    owners = ((node, _Shown(tables[node])("globalPid")) for node in nodes)
    keys = [f'SELECT coalesce({owner}, -1), "correlationId" FROM {quoted(node)}' for node, owner in owners]
    own = f'(coalesce({shown("globalPid")}, -1), "correlationId")'
    counted = f'"correlationId" <> 0 AND {own} IN ({" UNION ".join(keys)})'
    return _WORK_FAULT.removesuffix("END") + f"WHEN {counted} THEN 'graph_with_nodes' END"
