"""What Ascend's device tasks are, as data: which are work, and which only wait, signal or mark.

The names are those of the runtime's task types, as traces (``Task Type``) and databases (``TASK.taskType``) write them.
Unknown types are work: they keep their type as the category, and whoever sums them up shows them as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

TASKS_VERSION = 1
"""Raised when a task type changes what it is; written into the tags of each run."""

LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {
        "EVENT_WAIT": "synchronization",
        "EVENT_RECORD": "synchronization",
        "EVENT_RESET": "synchronization",
        "EVENT_WAIT_SQE": "synchronization",
        "EVENT_RECORD_SQE": "synchronization",
        "NOTIFY_WAIT": "synchronization",
        "NOTIFY_RECORD": "synchronization",
        "NOTIFY_WAIT_SQE": "synchronization",
        "NOTIFY_RECORD_SQE": "synchronization",
        "WRITE_VALUE": "synchronization",
        "PROFILING_ENABLE": "profiler_overhead",
        "PROFILING_DISABLE": "profiler_overhead",
    }
)
"""Task types that are no work, with the reason under which the ledger counts them. A collective as a whole is an
interval of its own, so the waits inside it are not lost to its time."""

SPELLED: Mapping[str, str] = MappingProxyType({"MemcopyAsync": "MEMCPY_ASYNC"})
"""Names of tasks of older exports, as the task types that they are."""

COLLECTIVE, COLLECTIVE_TASK = "HCCL", "HCCL task"
"""Categories of a collective as a whole and of one task of it."""

_COLLECTIVE_NAME = re.compile(r"hcom_([A-Za-z]+)_")
_RUNTIME_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


def left_out(*names: str | None) -> str | None:
    """Why a task of these names (its type, its name) is no work; None when it is."""
    for name in names:
        if name and (reason := LEFT_OUT.get(name.upper().replace(" ", "_"))):
            return reason
    return None


def category(task_type: str | None, name: str | None, *, linked: bool) -> str | None:
    """The task's type. Where the trace says only "other": a name that is a runtime task type, or ``kernel`` for a task
    of any other name that the host launched (``linked``), as the same run's database files them.
    """
    name = SPELLED.get(name or "", name)
    if (task_type and task_type.lower() != "other") or not name:
        return task_type
    if _RUNTIME_NAME.fullmatch(name):
        return name
    return "kernel" if linked and name.lower() != "other" else task_type


def collective_name(name: str) -> str:
    """``hcom_allReduce__538_0_1`` as ``allreduce``; any other name as it is."""
    found = _COLLECTIVE_NAME.match(name)
    return found[1].lower() if found else name
