"""The options of a recording session."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import ContractError


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderOptions:
    """When rows are flushed, and what a fault does.

    A flush happens as soon as one of the three limits is reached: ``flush_rows`` buffered rows over all families,
    ``flush_bytes`` estimated bytes of them, or ``flush_seconds`` since the oldest buffered row. ``pending_flushes``
    batches may wait for the disk; after that a recording call waits, so memory stays bounded. With ``strict`` a fault
    of the disk raises :class:`~planewise.recorder.errors.RecordingError` at the next recording call; otherwise
    recording calls go on, their rows are counted as lost, and only ``flush`` and ``finish`` raise.
    """

    flush_rows: int = 65_536
    flush_bytes: int = 16 * 2**20
    flush_seconds: float = 5.0
    pending_flushes: int = 4
    strict: bool = False

    def __post_init__(self) -> None:
        for name in ("flush_rows", "flush_bytes", "flush_seconds", "pending_flushes"):
            if not getattr(self, name) > 0:
                raise ContractError(f"found {getattr(self, name)}, expected more than 0", position=name, code="option")
