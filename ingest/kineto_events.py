"""The events of a Chrome trace as typed records; what no plane holds is skipped while decoding."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

Scalar = int | str | float | bool | None
_ABSENT = Raw()


class Args(Struct, gc=False):
    """The arguments that planes hold, under the names of every generation of the profiler."""

    external_id: Scalar = field(name="External id", default=None)
    external_id_2021: Scalar = field(name="external id", default=None)
    external_id_camel: Scalar = field(name="externalId", default=None)
    sequence_number: Scalar = field(name="Sequence number", default=None)
    input_dims: Raw = field(name="Input Dims", default=_ABSENT)
    input_dims_2021: Raw = field(name="Input dims", default=_ABSENT)
    device: Scalar = None
    context: Scalar = None
    stream: Scalar = None
    correlation: Scalar = None
    correlation_camel: Scalar = field(name="correlationId", default=None)
    bytes: Scalar = None
    size: Scalar = None
    graph_id: Scalar = field(name="graph id", default=None)
    collective: Scalar = field(name="Collective name", default=None)
    dtype: Raw = _ABSENT
    in_elements: Scalar = field(name="In msg nelems", default=None)
    out_elements: Scalar = field(name="Out msg nelems", default=None)
    group_name: Scalar = field(name="Process Group Name", default=None)
    group_size: Scalar = field(name="Group size", default=None)
    group_ranks: Raw = field(name="Process Group Ranks", default=_ABSENT)


NO_ARGS = Args()


class Slice(Struct, gc=False, tag_field="ph", tag="X"):
    """A complete event: it has a start and a duration."""

    cat: str | None = None
    name: str | None = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Raw = _ABSENT
    dur: Raw = _ABSENT
    args: Args | list[Any] | Scalar = None


class MemoryArgs(Struct, gc=False):
    """The arguments of a ``[memory]`` event."""

    device_type: Scalar = field(name="Device Type", default=None)
    device_id: Scalar = field(name="Device Id", default=None)
    address: Scalar = field(name="Addr", default=None)
    bytes: Scalar = field(name="Bytes", default=None)
    allocated: Scalar = field(name="Total Allocated", default=None)
    reserved: Scalar = field(name="Total Reserved", default=None)


class Instant(Struct, gc=False, tag_field="ph", tag="i"):
    """An instant event."""

    cat: str | None = None
    name: str | None = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Raw = _ABSENT
    args: MemoryArgs | list[Any] | Scalar = None


class Begin(Struct, gc=False, tag_field="ph", tag="B"):
    """The begin of a slice."""

    cat: str | None = None
    name: str | None = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Raw = _ABSENT


class End(Struct, gc=False, tag_field="ph", tag="E"):
    """The end of a slice."""

    cat: str | None = None
    name: str | None = None
    pid: Scalar = None
    tid: Scalar = None
    ts: Raw = _ABSENT


class Sample(Struct, gc=False, tag_field="ph", tag="C"):
    """A counter event: one value per argument."""

    cat: str | None = None
    name: str | None = None
    pid: Scalar = None
    ts: Raw = _ABSENT
    args: Raw = _ABSENT


class Note(Struct, gc=False, tag_field="ph", tag="M"):
    """Metadata: the name, order or label of a process or thread."""

    name: str | None = None


class Flow(Struct, gc=False, tag_field="ph", tag="f"):
    """The end of a flow arrow."""

    cat: str | None = None


class Lost(Struct, gc=False, tag_field="ph", tag="\0"):
    """An event that could not be read; ``reason`` says why. Never decoded."""

    reason: str = ""


OTHERS = tuple(
    msgspec.defstruct(f"Phase{ord(phase)}", [("cat", str | None, None)], tag_field="ph", tag=phase, gc=False)
    for phase in "stbneSTpPNODvVRcI(),="
)
"""Phases that no plane holds: flow starts and steps, asynchronous and object events, samples, marks and the rest."""

_KINDS: tuple[Any, ...] = (Slice, Note, Flow, *OTHERS, Instant, Begin, End, Sample)
PHASE: dict[Any, str] = {kind: kind.__struct_config__.tag for kind in _KINDS} | {Lost: ""}
"""The phase of an event by its type."""

FAULTS = (msgspec.MsgspecError, ValueError, RecursionError)
"""What decoding raises for bytes that are no events."""

_UNION: Any = functools.reduce(operator.or_, _KINDS)
_DECODER: Any = msgspec.json.Decoder(type=list[_UNION])


class Ranges(Struct, gc=False):
    """The arguments of an event, as they stand."""

    args: Raw = _ABSENT


_ARGUMENTS = msgspec.json.Decoder(list[Ranges])


def decode_events(pieces: Sequence[Any]) -> list[Any]:
    """The events of an array whose body is these pieces of bytes joined; raises one of ``FAULTS``."""
    events: list[Any] = _DECODER.decode(b"".join((b"[", *pieces, b"]")))
    return events


def decode_arguments(bodies: Sequence[Any]) -> list[Any]:
    """The raw arguments of the same events; for the few categories whose arguments have no fixed names."""
    return [event.args for event in _ARGUMENTS.decode(b"[" + b",".join(bodies) + b"]")]
