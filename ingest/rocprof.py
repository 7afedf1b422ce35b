"""Reader of rocprofiler-sdk JSON, the document that ``rocprofv3 --output-format json`` writes."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..recorder.errors import InputRefused
from .contract import PlaneBatch
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .plane_rows import PlaneRows
from .rocprof_records import Agent, ApiCall, Correlation, Document, KernelDispatch, KernelSymbol, MemoryCopy, Tool
from .source import source_digest, source_name
from .streams import StreamDamaged, chunks, head

LIMIT_BYTES = 1 << 30
"""Largest document, decompressed. It is one JSON value, so it lies in memory whole while it is read."""

_HEAD = re.compile(rb"""\s*\{\s*"rocprofiler-sdk-tool"\s*:""")
_API_SECTIONS = ("hip_api", "hsa_api", "rccl_api")
_GPU = 2
_T = TypeVar("_T")


class RocprofReader:
    """Reads rocprofiler-sdk JSON."""

    name = "rocprof-json"
    doc = "rocprofiler-sdk JSON, as rocprofv3 writes it"

    def detect(self, path: Path) -> bool:
        """True for a JSON object whose first key is ``rocprofiler-sdk-tool``."""
        return path.is_file() and _HEAD.match(head(path, 256)) is not None

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` for what is no whole document of this kind."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            yield from _read(Path(path))
        finally:
            if collecting:
                gc.enable()


def _read(path: Path) -> Iterator[PlaneBatch]:
    digest = source_digest(path)
    document = _decoded(path)
    run_id = foreign_run_id(path, digest)
    fates = Fates(source_name(path))
    devices: set[str] = set()
    seq = 0
    for index, tool in enumerate(document.tools):
        clock = run_id if len(document.tools) == 1 else f"{run_id}/{index}"
        process = _Process(tool, run_id, clock, fates, seq)
        yield from process.batches()
        devices |= process.used
        seq = process.seq
    yield from fates.batches(run_id)
    one = document.tools[0].metadata if len(document.tools) == 1 else None
    run = ForeignRun(
        run_id=run_id,
        schema="rocprofiler-sdk-tool",
        source_format=RocprofReader.name,
        source_digest=digest,
        producer="rocprofiler-sdk",
        time_unit="ns",
        host_clock_id=run_id if one else None,
        link_keys=("correlation_id.external", "correlation_id.internal"),
        device=next(iter(devices)) if len(devices) == 1 else None,
        tags={"command": " ".join(one.command)[:1000]} if one and one.command else {},
        data_lost=fates.data_lost,
    )
    yield run.batch(path, fates.rows)


def _decoded(path: Path) -> Document:
    text = bytearray()
    try:
        for piece in chunks(path):
            text += piece
            if len(text) > LIMIT_BYTES:
                message = f"the document is longer than {LIMIT_BYTES} bytes, expected at most that"
                raise InputRefused(message, source=path, code="too_large", remedy="record a shorter region")
        return msgspec.json.decode(text, type=Document)
    except StreamDamaged as error:
        position = f"decompressed byte {error.offset}"
        raise InputRefused(error.message, source=path, position=position, code="damaged_stream") from None
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        message = f"is no whole rocprofiler-sdk document: {error}"
        remedy = "record it again; a document that was cut cannot be read in part"
        raise InputRefused(message, source=path, code="invalid_document", remedy=remedy) from None


class _Process:
    """The records of one process, as rows."""

    def __init__(self, tool: Tool, run_id: str, clock: str, fates: Fates, seq: int) -> None:
        self.used: set[str] = set()
        self.seq = seq
        self._tool = tool
        self._clock = clock
        self._fates = fates
        self._operations = [(names.kind, names.operations) for names in tool.strings.buffer_records]
        self._agents = {agent.id.handle: agent for agent in self._known("agents", tool.agents, Agent)}
        symbols = self._known("kernel_symbols", tool.kernel_symbols, KernelSymbol)
        self._kernels = {
            s.kernel_id: s.demangled_kernel_name or s.formatted_kernel_name or s.kernel_name or None for s in symbols
        }
        for kind in ("code_objects", "host_functions"):
            fates.keep(kind, None, len(getattr(tool, kind)))
        self._intervals = PlaneRows(
            "device_intervals",
            run_id,
            *("device", "stream_id", "clock_id", "backend", "start_ns", "duration_ns", "name"),
            *("correlation_id", "external_id", "category", "process_id", "bytes"),
        )
        self._launches = PlaneRows(
            "launches",
            run_id,
            *("name", "category", "start_ns", "duration_ns", "process_id", "thread_id"),
            *("correlation_id", "external_id"),
        )

    def batches(self) -> Iterator[PlaneBatch]:
        """Every section in the order of the document; a section that is not read is counted and named."""
        for section, records in self._tool.buffer_records.items():
            if section == "kernel_dispatch":
                yield from self._each(section, records, KernelDispatch, self._dispatch, self._intervals)
            elif section == "memory_copy":
                yield from self._each(section, records, MemoryCopy, self._copy, self._intervals)
            elif section in _API_SECTIONS:
                yield from self._each(section, records, ApiCall, self._call, self._launches)
            else:
                self._not_read(section, records)
        for section, records in self._tool.callback_records.items():
            self._not_read(f"callback {section}", records)
        yield from self._intervals.rest()
        yield from self._launches.rest()

    def _not_read(self, section: str, records: list[Any]) -> None:
        if records:
            message = f"{len(records)} records of {section} are of a kind that is not read"
            self._fates.drop(section, "section_not_read", message, severity="warning", records=len(records))
            self.seq += len(records)

    def _each(self, section: str, records: list[Any], type_: Any, add: Any, rows: PlaneRows) -> Iterator[PlaneBatch]:
        decode = msgspec.json.Decoder(type_).decode
        plane = "launches" if rows is self._launches else "device_intervals"
        kept = 0
        for raw in records:
            seq, self.seq = self.seq, self.seq + 1
            try:
                record = decode(raw)
                if 0 < record.start_timestamp <= record.end_timestamp:
                    add(seq, section, record)
                    kept += 1
                else:
                    found = f"starts at {record.start_timestamp} and ends at {record.end_timestamp}"
                    self._fates.drop(section, "no_interval", f"record {seq} of {section} {found}", severity="warning")
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                self._fates.drop(section, "undecodable_record", f"record {seq} of {section}: {error}")
            yield from rows.full()
        self._fates.keep(section, plane, kept)

    def _known(self, kind: str, records: list[Any], type_: type[_T]) -> list[_T]:
        """Describing records; one that cannot be decoded is dropped, and what refers to it stays unnamed."""
        decode = msgspec.json.Decoder(type_).decode
        found = []
        for position, raw in enumerate(records):
            try:
                found.append(decode(raw))
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                self._fates.drop(kind, "undecodable_record", f"record {position} of {kind}: {error}")
        self._fates.keep(kind, None, len(found))
        return found

    def _dispatch(self, seq: int, section: str, record: KernelDispatch) -> None:
        info = record.dispatch_info
        queue = record.stream_id or info.queue_id
        name = self._kernels.get(info.kernel_id)
        self._add_interval(seq, section, record, self._device(info.agent_id.handle), queue, name, None)

    def _copy(self, seq: int, section: str, record: MemoryCopy) -> None:
        ends = (record.dst_agent_id.handle, record.src_agent_id.handle)
        gpu = next((end for end in ends if end in self._agents and self._agents[end].type == _GPU), ends[0])
        _, name = self._names(record.kind, record.operation)
        self._add_interval(seq, section, record, self._device(gpu), record.stream_id, name, record.bytes)

    def _add_interval(
        self, seq: int, section: str, record: Any, device: str, queue: Any, name: str | None, size: int | None
    ) -> None:
        stream = "unknown" if queue is None else str(queue.handle)
        start, end = record.start_timestamp, record.end_timestamp
        links = _links(record.correlation_id)
        place = (device, stream, self._clock, "rocprofiler-sdk", start, end - start, name)
        self._intervals.add(seq, *place, *links, section, self._tool.metadata.pid, size)

    def _call(self, seq: int, section: str, record: ApiCall) -> None:
        kind, name = self._names(record.kind, record.operation)
        start, end = record.start_timestamp, record.end_timestamp
        links = _links(record.correlation_id)
        shown = name or f"{section} {record.operation}"
        where = (self._tool.metadata.pid, record.thread_id)
        self._launches.add(seq, shown, kind or section, start, end - start, *where, *links)

    def _names(self, kind: int | None, operation: int | None) -> tuple[str | None, str | None]:
        """The document's own names of a kind and of its operation; None where it has none."""
        if kind is None or kind >= len(self._operations):
            return None, None
        name, operations = self._operations[kind]
        known = operation is not None and operation < len(operations)
        return name, operations[operation] if known and operation is not None else None

    def _device(self, handle: int) -> str:
        agent = self._agents.get(handle)
        number = None if agent is None else agent.logical_node_type_id
        if agent is None or number is None:
            label = f"agent:{handle}"
        else:
            label = f"rocm:{number}" if agent.type == _GPU else f"cpu:{number}"
        self.used.add(label)
        return label


def _links(correlation: Correlation | None) -> tuple[str | None, str | None]:
    """Internal and external id as text; 0 is the library's own way to write "none"."""
    if correlation is None:
        return None, None
    internal, external = correlation.internal, correlation.external
    return str(internal) if internal else None, str(external) if external else None
