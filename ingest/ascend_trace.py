"""Reader of the Chrome trace that the Ascend PyTorch profiler and msprof write, ``trace_view.json``."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from pathlib import Path

from ..recorder.errors import InputRefused
from .ascend_lanes import TraceRows
from .ascend_survey import Survey
from .ascend_tasks import TASKS_VERSION
from .contract import PlaneBatch
from .foreign import ForeignRun, foreign_run_id
from .source import source_digest
from .streams import head

_STRING_TIME = re.compile(rb'"ts"\s*:\s*"-?\d+(?:\.\d+)?"')
_BARE = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")
_MARKS = (
    b'"Fwd thread id"',
    b'"Python parent id"',
    b'"connection_id"',
    b'"Ascend Hardware"',
    b'"CANN"',
    b'"Physic Stream Id"',
    b"torch_to_npu",
    b'"labels": "NPU"',
    b"torch_npu",
)


class AscendTraceReader:
    """Reads ``trace_view.json``."""

    name = "ascend-trace"
    doc = "Ascend profiler trace_view.json, an array of Chrome events with times as strings"

    def detect(self, path: Path) -> bool:
        """True for an array of events whose times are strings and that speaks of Ascend."""
        if not path.is_file():
            return False
        start = head(path, 1 << 16)
        return bool(_BARE.match(start) and _STRING_TIME.search(start) and any(mark in start for mark in _MARKS))

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes, in two passes over the file; raises :class:`InputRefused` for what cannot be read."""
        collecting = gc.isenabled()
        gc.disable()  # Events hold no circles; walking them all, again and again, costs more than decoding.
        try:
            yield from self._planes(Path(path))
        finally:
            if collecting:
                gc.enable()

    def _planes(self, path: Path) -> Iterator[PlaneBatch]:
        digest = source_digest(path)
        run_id = foreign_run_id(path, digest)
        try:
            survey = Survey(path)
            rows = TraceRows(path, run_id, survey)
            yield from rows.batches()
        except OSError as error:
            raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
        if not survey.events:
            raise InputRefused("holds no events", source=path, code="no_events", remedy="record it again")
        yield from rows.fates.batches(run_id)
        run = ForeignRun(
            run_id=run_id,
            schema="ascend/trace_view",
            source_format=self.name,
            source_digest=digest,
            producer="Ascend profiler",
            time_unit="us",
            host_clock_id=run_id,
            link_keys=("async_npu", "connection_id"),
            device=next(iter(rows.devices)) if len(rows.devices) == 1 else None,
            tags={"planewise.ascend_tasks": str(TASKS_VERSION)},
            data_lost=rows.fates.data_lost,
        )
        yield run.batch(path, rows.fates.rows)
