"""Spans of modules, by hooks that are gone without a trace when the block ends."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .errors import ContractError
from .session import TraceSession
from .spans import SpanGuard
from .vocabulary import SpanKind


@contextmanager
def module_spans(
    model: torch.nn.Module, session: TraceSession, *, select: Callable[[str], bool] | None = None
) -> Iterator[None]:
    """Record a span of kind module around every forward call of every module inside ``model``, and of itself.

    A span is named as the module in the model (``layers.0.attention``), the model itself as its class. ``select`` says
    by name which modules have one. A forward that raises ends its spans. Modules of other threads nest in their own
    threads. Hooks that run before, e.g. a user's own, stay as they are and where they are.
    """
    recorder = _Recorder(session)
    handles: list[Any] = []
    try:
        for name, module in model.named_modules():
            label = name or type(model).__name__
            if select is None or select(label):
                before = recorder.begins(label)
                handles.append(module.register_forward_pre_hook(before, prepend=True))
                handles.append(module.register_forward_hook(recorder.ends, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
        recorder.close()


class _Recorder:
    """The guards of modules that run, innermost last, by thread."""

    def __init__(self, session: TraceSession) -> None:
        self._session = session
        self._open: dict[int, list[tuple[torch.nn.Module, SpanGuard]]] = {}

    def begins(self, label: str) -> Callable[[torch.nn.Module, Any], None]:
        def hook(module: torch.nn.Module, _args: Any) -> None:
            if self._session.is_open:
                guard = self._session.begin_span(label, SpanKind.MODULE)
                self._open.setdefault(threading.get_ident(), []).append((module, guard))

        return hook

    def ends(self, module: torch.nn.Module, _args: Any, _output: Any) -> None:
        """End the module's span, and those inside of it whose forward raised before their own hook could."""
        stack = self._open.get(threading.get_ident(), [])
        if not any(running is module for running, _ in stack):
            return
        while stack:
            running, guard = stack.pop()
            _close(guard)
            if running is module:
                return

    def close(self) -> None:
        """End what is still open."""
        for stack in self._open.values():
            while stack:
                _close(stack.pop()[1])


def _close(guard: SpanGuard) -> None:
    with contextlib.suppress(ContractError):  # The user left a span open inside; the session's end says so.
        guard.close()
