"""What is in memory before a region begins: every storage that a Python object holds, and what it is to the model."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .torch_helpers import device_label
from .vocabulary import MemoryCategory

Place = tuple[str, int]
"""A storage where it lies: its device label and its address."""


@dataclass(frozen=True, slots=True)
class KnownStorage:
    """A storage that was there before the region."""

    place: Place
    bytes: int
    category: MemoryCategory


def storages(tensors: Iterable[Any]) -> Iterator[tuple[Place, Any]]:
    """Place and storage of every tensor that has a storage with bytes."""
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
            if storage.nbytes():
                yield (device_label(tensor.device), storage.data_ptr()), storage
        except (RuntimeError, NotImplementedError, AttributeError):
            continue  # Sparse, functional and fake tensors have no storage of their own.


class Roles:
    """What storages are to a model and its optimizer, by identity alone."""

    def __init__(self, model: torch.nn.Module | None, optimizer: Any) -> None:
        self._model = model
        self._optimizer = optimizer

    def parameters(self) -> list[torch.Tensor]:
        """Every parameter of the model, and of the optimizer's groups."""
        found: list[torch.Tensor] = [] if self._model is None else list(self._model.parameters())
        if self._optimizer is not None:
            found += [parameter for group in self._optimizer.param_groups for parameter in group["params"]]
        return found

    def gradients(self) -> list[torch.Tensor]:
        """The gradient that each parameter has now."""
        return [parameter.grad for parameter in self.parameters() if parameter.grad is not None]

    def optimizer_state(self) -> Iterator[torch.Tensor]:
        """Every tensor in the optimizer's state."""
        if self._optimizer is not None:
            for state in self._optimizer.state.values():
                yield from (value for value in state.values() if isinstance(value, torch.Tensor))

    def now(self) -> dict[Place, MemoryCategory]:
        """The category of every storage that has a role at this moment."""
        found = {place: MemoryCategory.OPTIMIZER for place, _ in storages(self.optimizer_state())}
        found |= {place: MemoryCategory.GRADIENT for place, _ in storages(self.gradients())}
        return found | {place: MemoryCategory.PARAMETER for place, _ in storages(self.parameters())}


@dataclass(frozen=True, slots=True)
class Gone:
    """When a known storage was given back (``perf_counter_ns``), and in which span of the session."""

    instant_ns: int
    span_id: str


class KnownStorages:
    """Every storage that the collector's objects and the roles hold, once each, in order of device and address.

    Tensors that only C++ holds, e.g. those saved by an open graph, are not among them. ``gone`` says of each, by its
    place in ``found``, when its last owner let go of it: the profiler does not see that of what it did not see begin.
    """

    def __init__(self, roles: Roles, current_span: Callable[[], str]) -> None:
        held = (thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor))
        seen = dict(storages([*held, *roles.parameters(), *roles.gradients(), *roles.optimizer_state()]))
        categories = roles.now()
        self.found = [
            KnownStorage(place, seen[place].nbytes(), categories.get(place, MemoryCategory.OTHER))
            for place in sorted(seen)
        ]
        self.gone: dict[int, Gone] = {}
        self._current_span = current_span
        self._watches = [weakref.finalize(seen[place], self._left, n) for n, place in enumerate(sorted(seen))]
        for watch in self._watches:
            watch.atexit = False

    def _left(self, number: int) -> None:
        self.gone[number] = Gone(time.perf_counter_ns(), self._current_span())

    def forget(self) -> None:
        """Watch no longer."""
        for watch in self._watches:
            watch.detach()
