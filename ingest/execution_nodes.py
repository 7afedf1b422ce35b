"""Joins a PyTorch execution trace to the Kineto trace of the same run, by record function id (docs/formats/kineto.md).

An execution trace lists operators with their arguments and dependencies, and no times; the Kineto trace has the times.
Both carry the id that the profiler gave each record: Kineto as ``Record function id``, before it had that, as
``External id``. A node is joined only where id and name agree and exactly one event has both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Raw, Struct, field

from ..recorder.errors import InputRefused
from ..recorder.planes import INT64_MAX
from .contract import PlaneBatch
from .execution_trace import execution_trace_version
from .fates import Fates
from .kineto_stream import EventStream
from .plane_rows import PlaneRows
from .streams import StreamDamaged, chunks

LARGEST_TRACE = 1 << 29
"""Bytes of an execution trace that is read; it is decoded as a whole."""

KIND = "node"
_COLUMNS = (
    *("node_id", "parent_node_id", "name", "record_function_id", "event_seq", "sequence_number", "thread"),
    *("op_schema", "inputs", "outputs"),
)
_JOINED = ("cpu_op", "user_annotation", "Operator", None)
_NONE = Raw(b"[]")
_ABSENT = Raw()

Key = tuple[int, str]


class _Attribute(Struct, gc=False):
    name: str
    value: Any = None


class _Side(Struct, gc=False):
    """Inputs or outputs since schema 1.0.2."""

    values: Raw = _NONE
    shapes: Raw = _NONE
    types: Raw = _NONE


class _Node(Struct, gc=False):
    """A node of any schema: flat until 1.0.1, attributes in a list since."""

    id: int
    name: str
    parent: int | None = None
    ctrl_deps: int | None = None
    rf_id: int | None = None
    seq_id: int | None = None
    tid: int | None = None
    op_schema: str | None = None
    attrs: list[_Attribute] = []
    inputs: Raw = _NONE
    input_shapes: Raw = _NONE
    input_types: Raw = _NONE
    outputs: Raw = _NONE
    output_shapes: Raw = _NONE
    output_types: Raw = _NONE


class _Trace(Struct, gc=False):
    nodes: list[Raw]


class _Args(Struct, gc=False):
    record_function: Raw = field(name="Record function id", default=_ABSENT)
    external: Raw = field(name="External id", default=_ABSENT)


class _Event(Struct, gc=False):
    name: str | None = None
    cat: str | None = None
    ph: str | None = None
    args: _Args | list[Any] | int | float | str | bool | None = None


def with_execution_trace(batches: Iterable[PlaneBatch], kineto: Path, execution_trace: Path) -> Iterator[PlaneBatch]:
    """The batches of a Kineto trace, then the nodes of its execution trace with the events they belong to.

    Raises :class:`InputRefused` for what is no execution trace or cannot be decoded, and for one of which no node
    joins an event: it is of another run.
    """
    run_id, used = "", {"ingest_counts": 0, "ingest_issues": 0}
    host = [np.empty(0, np.int64)]
    for item in batches:
        if item.plane in ("ops", "spans"):
            host.append(item.table.column("seq").to_numpy())
        if item.table.num_rows and item.plane in used:
            used[item.plane] = item.table.column("seq")[-1].as_py() + 1
        if item.plane == "runs" and item.table.num_rows:
            run_id = item.table.column("run_id")[0].as_py()
        yield item
    fates = Fates(execution_trace.name)
    yield from _nodes(execution_trace, _Events(kineto, np.sort(np.concatenate(host))), run_id, fates)
    for item in fates.batches(run_id):
        yield PlaneBatch(item.plane, _shifted(item.table, used[item.plane]))


def _shifted(table: Any, by: int) -> Any:
    seq = pa.array((value + by for value in table.column("seq").to_pylist()), pa.int64())
    place = table.schema.get_field_index("seq")
    return table.set_column(place, table.schema.field(place), seq)


class _Events:
    """The host events of a Kineto trace by id and name; ``rows`` are the seq of those that are rows of a plane."""

    def __init__(self, kineto: Path, rows: Any) -> None:
        by_record: dict[Key, int | None] = {}
        by_external: dict[Key, int | None] = {}
        decoder = msgspec.json.Decoder(list[_Event])
        for chunk in EventStream(kineto).chunks():
            events = decoder.decode(b"[" + b",".join(chunk.bodies) + b"]")
            for seq, event in enumerate(events, chunk.first_seq):
                if event.ph == "X" and event.cat in _JOINED and event.name and type(event.args) is _Args:
                    _add(by_record, event.args.record_function, event.name, seq)
                    _add(by_external, event.args.external, event.name, seq)
        self._found = by_record or by_external
        self._rows = rows

    def seq(self, record: int | None, name: str) -> int | None:
        """The seq of the one event of that id and name; None when there is none, or several."""
        seq = self._found.get((record, name)) if record is not None else None
        at = np.searchsorted(self._rows, seq) if seq is not None else len(self._rows)
        return seq if at < len(self._rows) and self._rows[at] == seq else None


def _add(found: dict[Key, int | None], id_: Raw, name: str, seq: int) -> None:
    if number := _integer(bytes(id_).strip(b'"')):
        found[number, name] = None if (number, name) in found else seq


def _integer(text: bytes) -> int | None:
    return int(text) if text.isdigit() and len(text) < 19 else None


def _nodes(path: Path, events: _Events, run_id: str, fates: Fates) -> Iterator[PlaneBatch]:
    rows = PlaneRows("execution_nodes", run_id, *_COLUMNS)
    joined = records = 0
    for position, raw in enumerate(_decoded(path)):
        row = _row(raw, events)
        if row is None:
            message = f"node {position} has no id or no name of its kind"
            fates.drop(KIND, "undecodable_record", message)
            continue
        fates.keep(KIND, "execution_nodes")
        records += row[3] is not None
        joined += row[4] is not None
        rows.add(position, *row)
        yield from rows.full()
    if not joined:
        raise InputRefused(
            f"none of its {records} records has id and name of an event of the Kineto trace",
            source=path,
            code="execution_trace_of_another_run",
            remedy="give the execution trace that was recorded beside this Kineto trace",
        )
    if joined < records:
        message = f"{records - joined} of {records} records join no event, or several; their event_seq is NULL"
        fates.note("execution_nodes_not_joined", "info", message)
    yield from rows.rest()


def _decoded(path: Path) -> list[Raw]:
    try:
        pieces, size = [], 0
        for piece in chunks(path):
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST_TRACE:
                raise _refused(path, f"is an execution trace of more than {LARGEST_TRACE} bytes", "too_large")
        text = b"".join(pieces)
        if execution_trace_version(text[: 1 << 16]) is None:
            raise _refused(path, "is no PyTorch execution trace (no schema with nodes)", "no_execution_trace")
        return msgspec.json.decode(text, type=_Trace).nodes
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}", "unreadable") from error
    except StreamDamaged as error:
        raise _refused(path, f"is damaged: {error.message}", "damaged_stream") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _refused(path, f"is no whole execution trace: {str(error)[:200]}", "execution_trace_damaged") from error


def _refused(path: Path, message: str, code: str) -> InputRefused:
    remedy = "give the file that torch's ExecutionTraceObserver wrote, or leave --execution-trace out"
    return InputRefused(message, source=path, code=code, remedy=remedy)


def _row(raw: Raw, events: _Events) -> tuple[Any, ...] | None:
    try:
        node = msgspec.json.decode(raw, type=_Node)
        inputs, outputs = _sides(node)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    named = {attribute.name: attribute.value for attribute in node.attrs}
    record = _natural(node.rf_id if node.rf_id is not None else named.get("rf_id")) or None  # 0 is no record.
    sequence = node.seq_id if node.seq_id is not None else named.get("seq_id")
    thread = node.tid if node.tid is not None else named.get("tid")
    schema = node.op_schema if node.op_schema is not None else named.get("op_schema")
    parent = node.parent if node.parent is not None else node.ctrl_deps
    if abs(node.id) > INT64_MAX or abs(parent or 0) > INT64_MAX:
        return None
    places = (_natural(sequence), _natural(thread), schema if isinstance(schema, str) and schema else None)
    return node.id, parent, node.name, record, events.seq(record, node.name), *places, inputs, outputs


def _natural(value: Any) -> int | None:
    """A number of 0 or more of 63 bits, as ids are; the profiler writes -1 for none."""
    return value if type(value) is int and 0 <= value <= INT64_MAX else None


def _sides(node: _Node) -> tuple[str, str]:
    """Inputs and outputs as JSON objects of one form for both layouts."""
    texts = []
    for values, shapes, types in (
        (node.inputs, node.input_shapes, node.input_types),
        (node.outputs, node.output_shapes, node.output_types),
    ):
        if bytes(values).startswith(b"{"):
            side = msgspec.json.decode(values, type=_Side)
            values, shapes, types = side.values, side.shapes, side.types
        pieces = zip(("values", "shapes", "types"), (values, shapes, types), strict=True)
        texts.append("{" + ", ".join(f'"{key}": {bytes(text).decode()}' for key, text in pieces) + "}")
    return texts[0], texts[1]
