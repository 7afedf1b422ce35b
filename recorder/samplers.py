"""Physical memory of devices, sampled on a thread and at named points."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from .errors import ContractError, PlanewiseError
from .session import TraceSession

Checkpoint = dict[str, int]
"""What one look at a device found: some of used_bytes, free_bytes, reserved_bytes and capacity_bytes."""


class Sampler:
    """Takes checkpoints of devices every ``interval_s`` seconds until it is closed, and one at each end.

    ``unavailable`` is why there are none, None when there are: without its library or its device a sampler records
    nothing, and the capability stays ``none``; no value is ever made up. A device that fails later is asked no more.
    """

    def __init__(self, session: TraceSession, looks: dict[str, Callable[[], Checkpoint]], interval_s: float) -> None:
        if interval_s <= 0:
            raise ContractError(f"found {interval_s}, expected more than 0", position="interval_s", code="interval")
        self._session = session
        self._looks = dict(looks)
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.unavailable: str | None = None if looks else "no device"

    def sample(self) -> int:
        """Take one checkpoint of every device now; returns how many were recorded."""
        taken = 0
        with self._lock:
            for device, look in list(self._looks.items()):
                try:
                    found = look()
                except Exception as error:  # noqa: BLE001  A driver may raise anything; the program goes on.
                    self._give_up(device, error)
                    continue
                try:
                    self._session.record_device_memory(device, **found)
                except PlanewiseError:
                    self._stop.set()  # The session has ended, or cannot record any more.
                    return taken
                taken += 1
        return taken

    def _give_up(self, device: str, error: Exception) -> None:
        del self._looks[device]
        if not self._looks:
            self.unavailable = f"{device}: {error}"

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            self.sample()

    def close(self) -> None:
        """Stop sampling, after a last checkpoint."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
            if self._session.is_open:
                self.sample()

    def __enter__(self) -> Sampler:
        if self._looks and self._thread is None:
            self.sample()
            self._thread = threading.Thread(target=self._run, name="planewise-sampler", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class NvmlSampler(Sampler):
    """Used, free and total memory of GPUs, as NVML observes them (the extra ``nvml``).

    NVML numbers all GPUs of the machine; ``devices`` maps device labels to NVML's numbers, ``cuda:<n>`` to ``n`` by
    default, which is wrong where CUDA_VISIBLE_DEVICES renumbers them. ``library`` is pynvml.
    """

    def __init__(
        self,
        session: TraceSession,
        *,
        devices: dict[str, int] | None = None,
        interval_s: float = 0.1,
        library: Any = None,
    ) -> None:
        try:
            self._nvml = importlib.import_module("pynvml") if library is None else library
            self._nvml.nvmlInit()
            numbers = devices or {f"cuda:{n}": n for n in range(self._nvml.nvmlDeviceGetCount())}
            handles = {label: self._nvml.nvmlDeviceGetHandleByIndex(number) for label, number in numbers.items()}
        except Exception as error:  # noqa: BLE001  No library, no driver, no device: each raises its own.
            super().__init__(session, {}, interval_s)
            self.unavailable = f"NVML: {error}"
            return
        super().__init__(session, {label: self._look(handle) for label, handle in handles.items()}, interval_s)

    def _look(self, handle: Any) -> Callable[[], Checkpoint]:
        def look() -> Checkpoint:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
            return {"used_bytes": memory.used, "free_bytes": memory.free, "capacity_bytes": memory.total}

        return look


class TorchAllocatorSampler(Sampler):
    """What PyTorch's caching allocator holds of each GPU: bytes in use and bytes reserved.

    These are the allocator's own counters, not the device's: what other libraries hold is not in them.
    """

    def __init__(
        self, session: TraceSession, *, devices: Iterable[int] | None = None, interval_s: float = 0.1, cuda: Any = None
    ) -> None:
        self._cuda = importlib.import_module("torch").cuda if cuda is None else cuda
        if not self._cuda.is_available():
            super().__init__(session, {}, interval_s)
            self.unavailable = "PyTorch sees no CUDA device"
            return
        numbers = range(self._cuda.device_count()) if devices is None else devices
        super().__init__(session, {f"cuda:{number}": self._look(number) for number in numbers}, interval_s)

    def _look(self, number: int) -> Callable[[], Checkpoint]:
        def look() -> Checkpoint:
            reserved = self._cuda.memory_reserved(number)
            return {"used_bytes": self._cuda.memory_allocated(number), "reserved_bytes": reserved}

        return look
