"""PyTorch execution traces (Chakra JSON): recognised, and refused with what to ingest in their place.

An execution trace lists operators with their arguments and dependencies, and no times. Alone it fills no plane;
:mod:`.execution_nodes` joins it to the Kineto trace of the same run.
"""

from __future__ import annotations

import re
from pathlib import Path

from ..recorder.errors import IncompatibleInput, InputRefused
from .streams import head

_HEAD_BYTES = 1 << 16
_SCHEMA = re.compile(rb'\s*\{\s*"schema"\s*:\s*"(\d+\.\d+\.\d+[^"]{0,40})"')
_NODES = re.compile(rb'"nodes"\s*:\s*\[')
_RECORDED = (b"execution_trace", b"rf_id", b"ctrl_deps")


def execution_trace_version(text: bytes) -> str | None:
    """The schema version when the text opens an execution trace, else None."""
    schema = _SCHEMA.match(text)
    nodes = _NODES.search(text)
    if schema is None or nodes is None or b'"traceEvents"' in text[: nodes.start()]:
        return None
    return schema[1].decode("utf-8", "replace") if any(sign in text for sign in _RECORDED) else None


def execution_trace_refusal(path: Path) -> InputRefused | None:
    """The refusal of an execution trace; None when ``path`` is something else."""
    version = execution_trace_version(head(path, _HEAD_BYTES))
    if version is None:
        return None
    message = (
        f"is a PyTorch execution trace (Chakra schema {version}): operators and their arguments without any times, "
        "which alone fills no plane"
    )
    remedy = "ingest the Kineto trace of the same run, with --execution-trace and this file"
    return IncompatibleInput(message, source=path, code="execution_trace", remedy=remedy)
