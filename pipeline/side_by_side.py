"""The same work on many things, in several processes of this machine or on a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

KILLED = "a process was killed, perhaps for want of memory; run it again with --jobs 1"
"""What is said of a thing whose process ended."""

_CLUSTER_SHARE = 16


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster whose nodes see the store under the same path (docs/scale.md).

    ``address`` is what ``ray.init`` takes: ``HOST:PORT`` of the head node, ``auto`` for the cluster of this machine, or
    ``local`` for a new one on this machine alone.
    """

    address: str


Jobs: TypeAlias = int | RayCluster
"""Who works: so many processes of this machine, or the nodes of a cluster."""


def is_apart(jobs: Jobs, things: int) -> bool:
    """True when other processes do the work; one thing is not worth the start of a process."""
    return things > 0 if isinstance(jobs, RayCluster) else jobs > 1 and things > 1


def share(jobs: Jobs, things: int) -> int:
    """How many things at most one process should take at once, so that all have work."""
    return _CLUSTER_SHARE if isinstance(jobs, RayCluster) else -(-things // jobs)


def side_by_side(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: Jobs,
    *,
    killed: Callable[[Item], Result],
    begin: Callable[..., None] | None = None,
    given: tuple[Any, ...] = (),
) -> Iterator[Result]:
    """One result per item, in order, each made in one of many processes, which call ``begin(*given)`` first.

    ``killed`` gives the result of an item whose process was killed, on a cluster after retries. Everything that goes in
    or out is pickled, and all functions are those of modules. Raises :class:`UsageError` for a cluster that is not
    there, or lacks this release of planewise.
    """
    if isinstance(jobs, RayCluster):
        from .ray_tasks import on_ray  # An extra.

        yield from on_ray(work, items, jobs.address, killed=killed, begin=begin, given=given)
        return
    count = max(min(jobs, len(items)), 1)
    threads = max((os.cpu_count() or 1) // count, 1)
    with ProcessPoolExecutor(count, get_context("spawn"), _begin_apart, (threads, begin, given)) as pool:
        futures = [pool.submit(work, item) for item in items]
        for item, future in zip(items, futures, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool:
                yield killed(item)


def _begin_apart(threads: int, begin: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    from .database import limit_threads  # Loads DuckDB, which a capturing process does without.

    limit_threads(threads)
    if begin is not None:
        begin(*given)
