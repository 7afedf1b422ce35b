"""Front door of ingest: the readers by name, and which of them reads a given input."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from ..recorder.errors import InputRefused
from .ascend_csv import AscendCsvReader
from .ascend_db import AscendDbReader
from .ascend_trace import AscendTraceReader
from .candle_trace import CandleTraceReader
from .capture import CaptureReader
from .contract import PlaneBatch, Reader
from .inference import InferenceReader
from .kineto import KinetoReader
from .memory_snapshot import MemorySnapshotReader
from .memory_timeline import MemoryTimelineReader
from .nsys_capture import NsightCaptureReader
from .nsys_csv import NsysCsvReader
from .nsys_recipe import NsysRecipeReader
from .nsys_sqlite import NsysSqliteReader
from .recognise import refusal
from .rocprof import RocprofReader
from .source import source_digest
from .stormlog import StormlogReader

__all__ = ["READERS", "PlaneBatch", "Reader", "detect_format", "source_digest"]

_KNOWN: tuple[Reader, ...] = (
    CaptureReader(),
    CandleTraceReader(),
    InferenceReader(),
    StormlogReader(),
    RocprofReader(),
    AscendCsvReader(),
    AscendTraceReader(),
    AscendDbReader(),
    NsysSqliteReader(),
    NsightCaptureReader(),
    NsysRecipeReader(),
    NsysCsvReader(),
    MemorySnapshotReader(),
    MemoryTimelineReader(),
    KinetoReader(),
)

READERS: Mapping[str, Reader] = MappingProxyType({reader.name: reader for reader in _KNOWN})
"""Every reader by name, in the order in which :func:`detect_format` asks them."""


def detect_format(path: str | Path) -> Reader:
    """The reader whose format the content of ``path`` has; the name of the file plays no part.

    Raises :class:`InputRefused` when there is nothing at ``path``, and :class:`IncompatibleInput` when no reader knows
    the content: with a code of its own and a remedy for what :mod:`.recognise` can name, else ``unknown_format`` with
    the list of known formats.
    """
    where = Path(path)
    if not where.exists():
        raise InputRefused("nothing is there", source=where, code="not_found", remedy="check the path")
    for reader in READERS.values():
        if reader.detect(where):
            return reader
    known = ", ".join(f"{reader.name} ({reader.doc})" for reader in READERS.values())
    raise refusal(where, known)
