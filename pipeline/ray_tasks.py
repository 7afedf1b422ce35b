"""Work on many things as tasks of a Ray cluster; needs the extra ``ray``."""

from __future__ import annotations

import logging
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ..recorder.errors import UsageError
from .database import limit_threads
from .views import views_digest

Item = TypeVar("Item")
Result = TypeVar("Result")

RETRIES = 3
"""How often Ray starts a task again whose worker or node died. Every stage may be repeated: a run moves whole."""

_IN_FLIGHT_PER_CPU = 4
_CONNECT_S = 5.0
_begun: set[str] = set()


def on_ray(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    address: str,
    *,
    killed: Callable[[Item], Result],
    begin: Callable[..., None] | None,
    given: tuple[Any, ...],
) -> Iterator[Result]:
    """What ``side_by_side`` says, with a task per item; one CPU each, started again where its node dies."""
    with _cluster(address) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_do)
        width = max(int(ray.cluster_resources().get("CPU", 1)), 1) * _IN_FLIGHT_PER_CPU
        waiting: deque[tuple[Item, Any]] = deque()
        left = deque(items)
        while left or waiting:
            while left and len(waiting) < width:
                waiting.append((left[0], task.remote(_release(), work, begin, given, left.popleft())))
            item, coming = waiting.popleft()
            try:
                yield ray.get(coming)
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError:
                yield killed(item)


def _do(
    release: str, work: Callable[[Item], Result], begin: Callable[..., None] | None, given: tuple[Any, ...], item: Item
) -> Result:
    """On a node. A worker lives on from call to call of this stage and of others."""
    if release != _release():
        raise UsageError(
            f"a node of the Ray cluster runs planewise {_release()}, this machine {release}",
            remedy="install the same release on every node",
        )
    limit_threads(1)  # A task has one CPU.
    begun = repr((begin, given))
    if begin is not None and begun not in _begun:
        begin(*given)
        _begun.clear()
        _begun.add(begun)
    return work(item)


def _release() -> str:
    from .. import __version__

    return f"{__version__} with the views {views_digest()}"


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """The module ``ray``, connected; a cluster that this process is connected to already stays so."""
    try:
        import ray
    except ImportError:
        raise UsageError("--ray needs Ray", remedy="pip install 'planewise[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    _refuse_silent(address)
    try:
        ray.init(address=address, namespace="planewise", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_cluster(address, str(error)) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _refuse_silent(address: str) -> None:
    """Refuse a head node where nobody listens: Ray itself asks for minutes, and then ends the process."""
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal()):
        return  # auto, local and the like.
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, str(error)) from error


def _no_cluster(address: str, why: str) -> UsageError:
    return UsageError(
        f"no Ray cluster at {address!r}: {why.strip().partition(chr(10))[0]}",
        remedy="name HOST:PORT of its head node, auto for that of this machine, or local for one of its own",
    )
