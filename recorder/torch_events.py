"""Device intervals from pairs of CUDA events, on a clock of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from .errors import ContractError, RecordingError
from .session import TraceSession
from .spans import SpanId

BACKEND = "cuda-event"


@dataclass(slots=True)
class _Pair:
    span_id: SpanId
    name: str | None
    device: int
    stream: str
    begin: Any
    end: Any


class CudaEventTimer:
    """Times device work between two points of a stream, without waiting for the device while the region runs.

    Each device has one reference event; times are what has passed since it, so the clock ``cuda-event:<device>`` starts
    near the timer's making and is aligned to nothing else. The driver gives them in milliseconds as 32-bit floats, with
    a resolution of about half a microsecond: they are rounded to whole nanoseconds, and the longer the region, the
    coarser they get. A pair with no time between its events is not recorded and counted in ``empty``.

    ``events`` makes an event (``torch.cuda.Event`` with timing by default), ``streams`` names the current stream.
    """

    def __init__(
        self,
        session: TraceSession,
        *,
        events: Callable[[], Any] | None = None,
        streams: Callable[[int], Any] | None = None,
    ) -> None:
        self._session = session
        self._event = events or (lambda: torch.cuda.Event(enable_timing=True))  # type: ignore[no-untyped-call]
        self._stream = streams or torch.cuda.current_stream
        self._references: dict[int, Any] = {}
        self._pairs: list[_Pair] = []
        self.empty = 0

    @contextmanager
    def interval(self, name: str | None = None, *, device: int = 0, span_id: SpanId | None = None) -> Iterator[None]:
        """Time what the block puts on the current stream of a device; the span is the innermost open one by default."""
        stream = self._stream(device)
        if device not in self._references:
            self._references[device] = self._event()
            self._references[device].record(stream)
        begin, end = self._event(), self._event()
        begin.record(stream)
        try:
            yield
        finally:
            end.record(stream)
            owner = self._session.current_span_id if span_id is None else span_id
            number = str(getattr(stream, "cuda_stream", stream))
            self._pairs.append(_Pair(owner, name, device, number, begin, end))

    def resolve(self) -> int:
        """Wait for every event and record the intervals; returns how many. Call it after the measured region.

        Raises :class:`RecordingError` when the device does not give a time; the intervals before it are recorded.
        """
        pairs, self._pairs = self._pairs, []
        recorded = 0
        for pair in pairs:
            try:
                pair.end.synchronize()
                reference = self._references[pair.device]
                start = _nanoseconds(reference.elapsed_time(pair.begin))
                duration = _nanoseconds(pair.begin.elapsed_time(pair.end))
            except (RuntimeError, ValueError) as error:
                raise RecordingError(f"a CUDA event has no time: {error}", code="event_without_time") from error
            if duration == 0:
                self.empty += 1
                continue
            self._record(pair, start, duration)
            recorded += 1
        return recorded

    def _record(self, pair: _Pair, start: int, duration: int) -> None:
        self._session.record_device_interval(
            pair.span_id,
            device=f"cuda:{pair.device}",
            stream_id=pair.stream,
            clock_id=f"{BACKEND}:{pair.device}",
            backend=BACKEND,
            start_ns=start,
            duration_ns=duration,
            name=pair.name,
        )


def _nanoseconds(milliseconds: float) -> int:
    found = round(milliseconds * 1_000_000)
    if found < 0:
        raise ContractError(
            f"{milliseconds} ms lie between two events", position="interval", code="event_before_reference"
        )
    return found
