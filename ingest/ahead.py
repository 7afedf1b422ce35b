"""Work on the items of a stream in threads, a few ahead of whoever takes the results, in the order of the stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from ..recorder.errors import InputRefused

Item = TypeVar("Item")
Result = TypeVar("Result")


def work_ahead(work: Callable[[Item], Result], items: Iterable[Item], threads: int = 2) -> Iterator[Result]:
    """Yield ``work(item)`` for each item, at most ``threads`` of them ahead.

    What ``work`` raises is raised in its turn; an :class:`InputRefused` of ``items``, after the results before it.
    """
    waiting: deque[Future[Result]] = deque()
    stream = iter(items)
    with ThreadPoolExecutor(threads) as pool:
        try:
            end: StopIteration | InputRefused | None = None
            while end is None:
                try:
                    waiting.append(pool.submit(work, next(stream)))
                except (StopIteration, InputRefused) as found:
                    end = found
                else:
                    if len(waiting) > threads:
                        yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
            if isinstance(end, InputRefused):
                raise end
        finally:
            pool.shutdown(cancel_futures=True)
