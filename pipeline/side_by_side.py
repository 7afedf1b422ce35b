"""The same work on many things, in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

KILLED = "a process was killed, perhaps for want of memory; run it again with --jobs 1"
"""What is said of a thing whose process ended."""


def side_by_side(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int,
    *,
    killed: Callable[[Item], Result],
    begin: Callable[..., None] | None = None,
    given: tuple[Any, ...] = (),
) -> Iterator[Result]:
    """One result per item, in order, each made in one of ``jobs`` fresh processes, which call ``begin(*given)`` first.

    ``killed`` gives the result of an item whose process was killed. Everything that goes in or out is pickled.
    """
    count = max(min(jobs, len(items)), 1)
    with ProcessPoolExecutor(count, get_context("spawn"), begin, given) as pool:
        futures = [pool.submit(work, item) for item in items]
        for item, future in zip(items, futures, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool:
                yield killed(item)
