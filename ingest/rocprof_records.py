"""The records of a rocprofiler-sdk JSON document, as far as they are read."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from ..recorder.planes import INT64_MAX

Count = Annotated[int, Meta(ge=0, le=INT64_MAX)]
_Handle = Annotated[int, Meta(ge=0)]
#: Ids of 64 bits without a sign; they are only compared and shown.


class Handle(Struct, gc=False):
    handle: _Handle


class Correlation(Struct, gc=False):
    internal: _Handle = 0
    external: _Handle | str | None = None


class Dispatch(Struct, gc=False):
    agent_id: Handle
    kernel_id: _Handle
    queue_id: Handle | None = None


class KernelDispatch(Struct, gc=False):
    start_timestamp: Count
    end_timestamp: Count
    dispatch_info: Dispatch
    correlation_id: Correlation | None = None
    stream_id: Handle | None = None


class MemoryCopy(Struct, gc=False):
    start_timestamp: Count
    end_timestamp: Count
    dst_agent_id: Handle
    src_agent_id: Handle
    kind: Count | None = None
    operation: Count | None = None
    correlation_id: Correlation | None = None
    bytes: Count | None = None
    stream_id: Handle | None = None


class ApiCall(Struct, gc=False):
    start_timestamp: Count
    end_timestamp: Count
    kind: Count
    operation: Count
    thread_id: Count | None = None
    correlation_id: Correlation | None = None


class Agent(Struct, gc=False):
    """``type`` 1 is a CPU, 2 a GPU; ``logical_node_type_id`` numbers the agents of one type."""

    id: Handle
    type: int
    logical_node_type_id: int | None = None


class KernelSymbol(Struct, gc=False):
    kernel_id: _Handle
    demangled_kernel_name: str = ""
    formatted_kernel_name: str = ""
    kernel_name: str = ""


class KindNames(Struct):
    kind: str
    operations: list[str] = []


class Strings(Struct):
    buffer_records: list[KindNames] = []


class Metadata(Struct):
    pid: Count | None = None
    node: dict[str, Raw] = {}
    command: list[str] = []


class Tool(Struct):
    """What one process recorded. Records stay undecoded here, so that a broken one costs itself alone."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    agents: list[Raw] = []
    strings: Strings = msgspec.field(default_factory=Strings)
    kernel_symbols: list[Raw] = []
    code_objects: list[Raw] = []
    host_functions: list[Raw] = []
    buffer_records: dict[str, list[Raw]] = {}
    callback_records: dict[str, list[Raw]] = {}


class Document(Struct):
    tools: list[Tool] = msgspec.field(name="rocprofiler-sdk-tool")
