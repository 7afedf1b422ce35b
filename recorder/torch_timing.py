"""The timing-grade capture: one measured region between two synchronisations of the device, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .session import TraceSession
from .spans import SpanGuard


@contextmanager
def timed_region(session: TraceSession, name: str, *, device: Any = "cpu") -> Iterator[SpanGuard]:
    """The measured region of a run that may be compared: the device has nothing left to do when it begins and ends.

    On the CPU nothing is waited for. On any other device the run must say so: plan it with
    ``ProfileRun.measured_region_device_synchronized()``. Only such a run, with nothing recorded inside, is worth the
    scope ``production_equivalent``, which stays the user's own claim. Raises what the device raises.
    """
    where = torch.device(device)
    _wait(where)
    with session.begin_measurement(name) as region:
        yield region
        _wait(where)


def _wait(device: torch.device) -> None:
    if device.type != "cpu":
        torch.get_device_module(device).synchronize(device)
