"""What one query may cost: memory, time and rows, for SQL of people whom one does not know."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from ..recorder.errors import UsageError


@dataclass(frozen=True)
class Limits:
    """``memory`` as DuckDB writes sizes (1GB), ``seconds`` until a query is stopped, ``rows`` that are written.

    None: no limit but the machine's. With a limit of memory nothing is spilled to disk.
    """

    memory: str | None = None
    seconds: float | None = None
    rows: int | None = None

    def over(self, other: Limits) -> Limits:
        """These limits, and the other ones where these say nothing."""
        return Limits(
            self.memory if self.memory is not None else other.memory,
            self.seconds if self.seconds is not None else other.seconds,
            self.rows if self.rows is not None else other.rows,
        )


FREE = Limits()
SHARED = Limits(memory="1GB", seconds=30.0, rows=100_000)
"""What ``--untrusted`` sets (docs/shared-service.md)."""


@contextmanager
def within(con: duckdb.DuckDBPyConnection, limits: Limits) -> Iterator[None]:
    """Hold what runs on ``con`` in the block to the limits; set before the connection is locked down.

    Raises :class:`UsageError` where a query takes too long or too much, or a limit cannot be set.
    """
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        con.interrupt()

    if limits.memory is not None:
        _bound_memory(con, limits.memory)
    timer = None if limits.seconds is None else threading.Timer(limits.seconds, stop)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    except (duckdb.Error, RuntimeError, UsageError) as error:
        raise _explained(error, limits, stopped.is_set()) from None
    finally:
        if timer is not None:
            timer.cancel()


def _bound_memory(con: duckdb.DuckDBPyConnection, memory: str) -> None:
    try:
        con.execute(f"SET memory_limit = '{memory.replace(chr(39), '')}'")
        con.execute("SET max_temp_directory_size = '0KiB'")
    except duckdb.Error as error:
        raise UsageError(f"the limit of memory {memory!r:.40} cannot be set: {error}", remedy="give e.g. 1GB") from None


def _explained(error: BaseException, limits: Limits, stopped: bool) -> BaseException:
    if stopped:
        return UsageError(
            f"the query took longer than {limits.seconds:g} s and was stopped",
            code="query_timeout",
            remedy="ask for less, or raise --time-limit",
        )
    text = str(error)
    if limits.memory is not None and ("Out of Memory" in text or "max_temp_directory_size" in text):
        return UsageError(
            f"the query needs more than {limits.memory}",
            code="query_memory",
            remedy="ask for less, or raise --memory-limit",
        )
    return error
