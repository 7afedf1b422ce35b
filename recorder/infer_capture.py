"""What an engine adapter and a trace collector give back, and the session they speak of (correlation capture, 1.1)."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from .infer_base import CorrelationEvent, check_choice, check_name, refused
from .infer_events import check_capabilities

STATUSES = ("running", "completed", "interrupted", "incomplete")
ABSENCES = ("not_requested", "failed", "not_installed")


@dataclass(frozen=True)
class CaptureCapabilities:
    """What a component supports, what of it was enabled, and what of that it collected."""

    supported: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()
    collected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_capabilities(self.supported, self.enabled, self.collected, tuple)


@dataclass(frozen=True)
class TraceAttachment:
    """A raw trace to register: a file (``path``) or an address (``url``), never both.

    ``storage`` is ``reference``, or ``copy`` to keep a copy of the file in the artifact. The path is confined to the
    folder of the run when it is registered, and the size and sha256 of the file are recorded then.
    """

    attachment_id: str
    title: str
    path: Path | None = None
    url: str | None = None
    storage: Literal["reference", "copy"] = "reference"
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.attachment_id or not self.title:
            raise refused("an attachment needs an attachment_id and a title that are not empty")
        if (self.path is None) == (self.url is None):
            raise refused(f"attachment {self.attachment_id!r:.80} needs exactly one of path and url")
        if self.url == "":
            raise refused(f"attachment {self.attachment_id!r:.80} has an empty url")
        check_choice("storage", self.storage, ("reference", "copy"))
        if self.storage == "copy" and self.path is None:
            raise refused(f"attachment {self.attachment_id!r:.80} has no path to copy from")


@dataclass(frozen=True)
class EngineCapture:
    """What an engine gave. ``events`` may be any iterable, read once: a generator keeps memory flat."""

    capabilities: CaptureCapabilities
    events: Iterable[CorrelationEvent] = ()
    summary: dict[str, Any] | None = None


@dataclass(frozen=True)
class TraceCapture:
    """What a tracer gave; ``events`` as in :class:`EngineCapture`."""

    capabilities: CaptureCapabilities
    events: Iterable[CorrelationEvent] = ()
    attachments: tuple[TraceAttachment, ...] = ()
    summary: dict[str, Any] | None = None


@dataclass(frozen=True)
class AbsentComponent:
    """Stands in for a component that gives nothing, and says why.

    ``reason`` is not_requested, failed or not_installed. ``collect`` may return one too.
    """

    reason: str
    detail: str | None = None

    def __post_init__(self) -> None:
        check_choice("reason", self.reason, ABSENCES)


class EngineAdapter(Protocol):
    """A source of requests, iterations, stages, memberships and launches of a server."""

    def collect(self, *, run_id: str, session_id: str) -> EngineCapture | AbsentComponent:
        """The evidence of one session; what it raises reaches the caller, and nothing is written."""
        ...


class TraceCollector(Protocol):
    """A source of GPU activities and of raw traces."""

    def collect(self, *, run_id: str, session_id: str) -> TraceCapture | AbsentComponent:
        """The evidence of one session; what it raises reaches the caller, and nothing is written."""
        ...


@dataclass(frozen=True)
class SessionSummary:
    """One session of a run: a process on a host, for a time (nanoseconds of the wall clock)."""

    session_id: str
    status: str
    started_at_ns: int
    ended_at_ns: int | None
    host: str
    pid: int
    job_id: str | None = None
    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    source: str = "planewise.session"


def create_session_summary(
    *,
    source: str = "planewise.session",
    status: str = "running",
    session_id: str | None = None,
    started_at_ns: int | None = None,
    ended_at_ns: int | None = None,
    host: str | None = None,
    pid: int | None = None,
    job_id: str | None = None,
    rank: int = 0,
    local_rank: int = 0,
    world_size: int = 1,
) -> SessionSummary:
    """A session of this process, now, unless told otherwise; raises :class:`ContractError` for an unknown status."""
    status = status.strip().lower()
    check_choice("status", status, STATUSES)
    check_name("source", source)
    return SessionSummary(
        session_id=session_id or str(uuid.uuid4()),
        status=status,
        started_at_ns=time.time_ns() if started_at_ns is None else started_at_ns,
        ended_at_ns=ended_at_ns,
        host=socket.gethostname() if host is None else host,
        pid=os.getpid() if pid is None else pid,
        job_id=job_id,
        rank=rank,
        local_rank=local_rank,
        world_size=max(1, world_size),
        source=source,
    )
