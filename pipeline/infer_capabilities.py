"""One record for each component of an append: what it could do and did, or why it was absent."""

from __future__ import annotations

import socket
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from .. import __version__
from ..recorder.infer_base import CorrelationContext
from ..recorder.infer_capture import AbsentComponent, CaptureCapabilities, SessionSummary
from ..recorder.infer_events import CapabilityEvent

PRODUCER = "planewise.infer.capture"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def capabilities(engine: Any, trace: Any, run_id: str, session: SessionSummary) -> list[CapabilityEvent]:
    context = CorrelationContext(
        run_id=run_id,
        session_id=session.session_id,
        producer_id=PRODUCER,
        source=PRODUCER,
        source_version=__version__,
        clock_domain=_clock_domain(session.host),
        clock_kind="wall",
        collection_mode="active",
        provenance="observed",
        host=session.host,
        pid=session.pid,
        rank=session.rank,
        local_rank=session.local_rank,
        world_size=session.world_size,
    )
    return [
        _capability(name, capture, context)
        for name, capture in (("engine_adapter", engine), ("trace_collector", trace))
    ]


def _capability(name: str, capture: Any, context: CorrelationContext) -> CapabilityEvent:
    event_id = f"{name}:{uuid.uuid4()}"
    if isinstance(capture, AbsentComponent):
        metadata = {"reason": capture.reason} | ({"detail": capture.detail} if capture.detail else {})
        return CapabilityEvent(context=context, event_id=event_id, component=name, available=False, metadata=metadata)
    own: CaptureCapabilities = capture.capabilities
    return CapabilityEvent(
        context=context,
        event_id=event_id,
        component=name,
        available=True,
        supported=list(own.supported),
        enabled=list(own.enabled),
        collected=list(own.collected),
        metadata={"summary": capture.summary} if capture.summary else {},
    )


def _clock_domain(host: str) -> str:
    """The wall clock of a host; only this host's own names its boot, which another machine cannot know."""
    boot = ""
    if host == socket.gethostname():
        with suppress(OSError):
            boot = _BOOT.read_text(encoding="ascii").strip()
    return "/".join(part for part in (host, boot, "unix_epoch_ns") if part)
