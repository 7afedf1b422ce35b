"""Automatic capture of a region of a PyTorch program: one context manager instead of a call per operation."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .contract import CaptureContract
from .errors import ContractError, PlanewiseError, RecordingError
from .session import TraceSession
from .torch_clock import MARK, HostClock, mark
from .torch_dispatch import dispatch_capture
from .torch_known import KnownStorages, Roles
from .torch_lifetimes import lifetimes
from .torch_profile import BACKEND, RowWriter, TreeWalk, Walked
from .torch_spans import SessionSpans
from .vocabulary import CoverageLevel, MeasurementScope

_ROWS_PER_EVENT = 4
"""An operation has a span's start, its row, and a span's end; an allocation has a row of memory, perhaps two."""


def torch_contract(**claims: Any) -> CaptureContract:
    """What :func:`record_torch` at depth ``profiler`` can claim, with more claims by the user on top.

    Operations are complete: the profiler sees each. Activations and logical memory are partial: what no rule classifies
    is ``other``, and what only C++ held before the region is not seen. The scope is profiled work.
    """
    own = {
        "measurement_scope": MeasurementScope.PROFILED_WORK,
        "operations": CoverageLevel.COMPLETE,
        "activations": CoverageLevel.PARTIAL,
        "logical_memory": CoverageLevel.PARTIAL,
    }
    if torch.cuda.is_available():
        own |= {"device_timing": CoverageLevel.PARTIAL, "physical_memory": CoverageLevel.PARTIAL}
    return CaptureContract(**{**own, **claims})


@contextmanager
def record_torch(
    session: TraceSession,
    *,
    depth: str = "profiler",
    model: torch.nn.Module | None = None,
    optimizer: Any = None,
) -> Iterator[None]:
    """Record every operation, allocation and piece of device work of the block, under the session's spans.

    ``depth`` is ``profiler``, or ``dispatch`` for :func:`~planewise.recorder.torch_dispatch.dispatch_capture`, which
    sees outputs and exact lifetimes, costs ten times as much, and sees no device work. What follows is of the profiler.

    Open it around the measured region. ``model`` and ``optimizer`` say which storages are parameters, gradients and
    optimizer state; without them no storage is. The rows are written when the block ends, also when it ends with an
    exception, which passes on. A fault of the profiler or of the disk never reaches the program unless the session is
    strict: the session is marked faulty, and ``finish`` raises. A second one in a session is refused, as is a running
    profiler and a depth that is not known (:class:`ContractError`). The profiler sees the thread that opens the block
    and those of autograd; operations of other threads of the program are not recorded.
    """
    if depth not in ("profiler", "dispatch"):
        raise ContractError(
            f"found depth {depth!r}, expected profiler or dispatch", position="depth", code="unknown_depth"
        )
    if depth == "dispatch":
        with dispatch_capture(session, model=model, optimizer=optimizer):
            yield
        return
    capture = _Capture(session, Roles(model, optimizer))
    capture.begin()
    try:
        yield
    except Exception:
        capture.end()
        raise
    except BaseException:  # An interrupt does not wait for the conversion.
        capture.abandon()
        raise
    capture.end()


class _Capture:
    """One block while it is recorded."""

    def __init__(self, session: TraceSession, roles: Roles) -> None:
        self._session = session
        self._roles = roles
        self._thread = threading.get_native_id()
        self._pid = os.getpid()

    def begin(self) -> None:
        """Start the profiler; what is in memory by then is noted first."""
        if torch._C._autograd._profiler_enabled():
            raise ContractError(
                "a profiler is running already",
                position="record_torch",
                code="profiler_running",
                remedy="leave its block first; PyTorch has one profiler",
            )
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profiler: Any = torch.profiler.profile(activities=activities, record_shapes=True, profile_memory=True)
        self._observed = self._session.observe_spans()
        self._entered_ns = self._session.elapsed_ns()
        self._known = KnownStorages(self._roles, lambda: self._session.current_span_id)
        self._profiler.__enter__()  # type: ignore[no-untyped-call]
        self._first = mark()

    def abandon(self) -> None:
        """Stop the profiler and write nothing."""
        self._session.ignore_spans()
        self._known.forget()
        self._profiler.__exit__(None, None, None)

    def end(self) -> None:
        """Stop the profiler and write what it kept."""
        last = mark()
        at_end = self._roles.now()
        self.abandon()
        if os.getpid() != self._pid or not self._session.is_open:
            return  # A fork left the block, whose parent records; or the program ended the session inside of it.
        collecting = gc.isenabled()
        gc.disable()  # Many rows and no cycles: the collector would look at each of them again and again.
        try:
            self._convert(last, at_end)
        except PlanewiseError as error:
            self._session.note_fault(error)
        except Exception as error:  # noqa: BLE001  Whatever a profiler of another version does, the program goes on.
            self._session.note_fault(
                RecordingError(f"the profiler's events could not be read: {error!r}", code="profiler_unreadable")
            )
        finally:
            if collecting:
                gc.enable()

    def _convert(self, last: Any, at_end: Any) -> None:
        results = self._profiler.profiler.kineto_results
        roots = results.experimental_event_tree()
        marks = sorted((root.start_time_ns, root.start_tid) for root in roots if root.name == MARK)
        clock = HostClock(self._session.host_origin_ns, self._first, last, [at for at, _ in marks])
        spans = SessionSpans(self._observed, self._thread, self._session.root_id)
        kineto = results.events()
        reserved = _ROWS_PER_EVENT * (len(kineto) + len(self._known.found) + 16)
        rows = RowWriter(self._session, self._session.reserve_seq(reserved))
        walked = TreeWalk(rows, clock, spans, self._thread, marks[0][1]).walk(roots)
        self._write_memory(rows, walked, clock, at_end)
        _write_device_work(rows, walked, kineto, results.trace_start_ns(), self._session.root_id)
        rows.flush()

    def _write_memory(self, rows: RowWriter, walked: Walked, clock: HostClock, at_end: Any) -> None:
        found = lifetimes(self._known.found, self._known.gone, walked.allocations, walked.gradients, at_end)
        events = []
        for life in found:
            for action, event in (("alloc", life.begin), ("free", life.end)):
                if event is not None:
                    at, where = clock.host_ns(event.profiler_ns), event.within
                    events.append((at, life, action, event.tensor_id, where.span_id, where.op_name))
                elif action == "alloc":
                    events.append((self._entered_ns, life, action, None, self._session.root_id, None))
                elif life.gone is not None:
                    at = life.gone.instant_ns - self._session.host_origin_ns
                    events.append((at, life, action, None, life.gone.span_id, None))
        for at, life, action, tensor, span_id, op_name in sorted(events, key=lambda row: row[0]):
            device, cells = life.place[0], (life.bytes, action, None, None, life.category.value)
            rows.add("memory_events", at, life.storage_id, tensor, span_id, op_name, device, *cells)


def _write_device_work(rows: RowWriter, walked: Walked, kineto: Any, begun_ns: int, root_id: str) -> None:
    """Kernels, copies and fills on the profiler's own clock, under the operation that launched them."""
    for event in kineto:
        if event.device_type() == torch._C._autograd.DeviceType.CPU or event.duration_ns() <= 0:
            continue
        kind = str(event.device_type()).rpartition(".")[2].lower()
        span_id = walked.spans_of.get(event.linked_correlation_id(), root_id)
        where = (span_id, f"{kind}:{event.device_index()}", str(event.device_resource_id()), BACKEND, BACKEND)
        start = event.start_ns() - begun_ns
        if start >= 0:
            link = str(event.correlation_id())
            rows.add("device_intervals", *where, start, event.duration_ns(), event.name(), link)
