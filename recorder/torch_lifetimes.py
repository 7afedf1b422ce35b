"""Pairs the profiler's allocations and frees by place, and says what each storage was for.

A category comes from how a storage was used, never from a name or a size. What no rule classifies is ``other``:

- parameter, gradient, optimizer: the storage holds a parameter, its ``grad`` or a state of the optimizer when the
  region begins or ends; a gradient also is what autograd accumulated into a leaf, or what a backward function left
  behind.
- activation: an operation of the forward pass left it behind, that is it outlived the outermost operation that
  allocated it. Forward is what autograd recorded, what the user's span of the step says, and what a checkpoint does
  again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .torch_known import Gone, KnownStorage, Place
from .torch_profile import Allocation
from .vocabulary import MemoryCategory


@dataclass(slots=True)
class Lifetime:
    """One storage: where, how large, what for, and which events began and ended it (None: before, after the region)."""

    storage_id: str
    place: Place
    bytes: int
    category: MemoryCategory
    begin: Allocation | None
    end: Allocation | None = None
    gone: Gone | None = None
    """How a storage ended that was there before, where the profiler did not see it."""


def lifetimes(
    known: Sequence[KnownStorage],
    gone: Mapping[int, Gone],
    allocations: Sequence[Allocation],
    gradients: Sequence[tuple[int, Place]],
    at_end: Mapping[Place, MemoryCategory],
) -> list[Lifetime]:
    """Every storage of a region, in the order of their beginnings; those that were there before come first.

    A free without an allocation is of a storage that only C++ held before the region; its size is that of its free.
    """
    found = [
        Lifetime(f"k{number}", storage.place, storage.bytes, storage.category, None, None, gone.get(number))
        for number, storage in enumerate(known)
    ]
    live = {lifetime.place: lifetime for lifetime in found}
    unseen: list[Lifetime] = []
    for _, event in _in_time(allocations, gradients):
        if not isinstance(event, Allocation):
            if event in live and live[event].category is not MemoryCategory.PARAMETER:
                live[event].category = MemoryCategory.GRADIENT
        elif event.bytes > 0:
            lifetime = Lifetime(f"a{len(found)}", event.place, event.bytes, MemoryCategory.OTHER, event)
            found.append(lifetime)
            live[event.place] = lifetime
        else:
            ended = live.pop(event.place, None)
            if ended is None:
                ended = Lifetime(f"u{len(unseen) + 1}", event.place, -event.bytes, MemoryCategory.OTHER, None)
                unseen.append(ended)
            ended.end = event
    for place, lifetime in live.items():
        if place in at_end:
            lifetime.category = at_end[place]
    for lifetime in found:
        if lifetime.category is MemoryCategory.OTHER and lifetime.begin is not None:
            lifetime.category = _left_behind(lifetime, lifetime.begin)
    return [*unseen, *found]


def _in_time(
    allocations: Sequence[Allocation], gradients: Sequence[tuple[int, Place]]
) -> Iterator[tuple[int, Allocation | Place]]:
    """Both kinds by the profiler's time; the walk goes thread by thread."""
    events: list[tuple[int, Allocation | Place]] = [(event.profiler_ns, event) for event in allocations]
    events += gradients
    yield from sorted(events, key=lambda event: event[0])


def _left_behind(lifetime: Lifetime, begin: Allocation) -> MemoryCategory:
    within = begin.within
    if within.outer_end_ns is None or (lifetime.end is not None and lifetime.end.profiler_ns <= within.outer_end_ns):
        return MemoryCategory.OTHER
    if within.phase == "backward":
        return MemoryCategory.GRADIENT
    if within.phase == "forward" and within.graph:
        return MemoryCategory.ACTIVATION
    return MemoryCategory.OTHER
