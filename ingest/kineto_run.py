"""What a trace says about its run: the keys around traceEvents -> the run row, and the issues -> their plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .contract import IssueLog
from .foreign import ForeignRun
from .kineto_categories import CATEGORIES_VERSION
from .kineto_columns import clean
from .kineto_recovery import Damage
from .kineto_slices import TIME_LIMIT_NS

_SINGLY = 100
"""Issues of one code that are written one by one; the rest are summed up."""
_MAX_TAGS = 200
_MAX_TEXT = 1000
_DEVICE_KEYS = ("name", "totalGlobalMem", "computeMajor", "computeMinor", "numSms")
_JOB_KEYS = ("backend", "pg_count", "nccl_version")


def base_ns(metadata: Mapping[str, Any]) -> int | None:
    """Nanoseconds that every time of the trace counts from; None when the trace names no base it could be."""
    base = metadata.get("baseTimeNanoseconds")
    return base if type(base) is int and 0 <= base < TIME_LIMIT_NS else None


def is_kineto(metadata: Mapping[str, Any]) -> bool:
    """The PyTorch profiler wrote it, as far as its keys say."""
    return "schemaVersion" in metadata or "deviceProperties" in metadata or "baseTimeNanoseconds" in metadata


def run_row(path: Path, run_id: str, digest: str, metadata: Mapping[str, Any], **found: Any) -> ForeignRun:
    """The run; ``found`` is what only the events say: link_keys, device, data_lost."""
    version, job = metadata.get("schemaVersion"), metadata.get("distributedInfo")
    job = job if isinstance(job, dict) else {}
    kineto = is_kineto(metadata)
    return ForeignRun(
        run_id=run_id,
        schema="kineto/chrome-trace" if kineto else "chrome-trace",
        source_format="kineto",
        source_digest=digest,
        producer="PyTorch profiler (Kineto)" if kineto else None,
        source_version=None if version is None else _text(version),
        time_unit="us",
        host_clock_id=clock_id(run_id, base_ns(metadata)),
        rank=_count(job.get("rank")),
        world_size=_count(job.get("world_size")),
        tags=_tags(metadata, job),
        **found,
    )


def clock_id(run_id: str, base: int | None) -> str:
    """The one clock of a trace, host and device alike: its file and what its times count from."""
    return f"{run_id}/{'ts' if base is None else f'base-{base}'}"


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**31 else None


def _text(value: Any) -> str:
    return clean(str(value))[:_MAX_TEXT]


def _tags(metadata: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, str]:
    """Plain top-level keys, what identifies each device, and the job's back end."""
    tags = {"kineto_categories_version": str(CATEGORIES_VERSION)}
    tags |= {_text(key): _text(value) for key, value in metadata.items() if type(value) in (str, int, float, bool)}
    tags |= {f"distributed.{key}": _text(job[key]) for key in _JOB_KEYS if key in job}
    devices = metadata.get("deviceProperties")
    for device in devices if isinstance(devices, list) else ():
        if isinstance(device, dict):
            own = {f"device.{device.get('id')}.{key}": device[key] for key in _DEVICE_KEYS if key in device}
            tags |= {_text(key): _text(value) for key, value in own.items()}
    return dict(list(tags.items())[:_MAX_TAGS])


def note_issues(log: IssueLog, file: str, damages: Iterable[Damage], unknown: Mapping[str, int]) -> None:
    """Write damages one by one up to a bound, the rest as a sum per code, and each unknown category once."""
    seen: Counter[tuple[str, str]] = Counter()
    for damage in damages:
        seen[damage.code, damage.severity] += 1
        if seen[damage.code, damage.severity] <= _SINGLY:
            log.note(file, damage.code, damage.severity, damage.message, offset=damage.offset)
    for (code, severity), number in seen.items():
        if number > _SINGLY:
            log.note(file, code, severity, f"{number - _SINGLY} more of these were not written one by one")
    for category, number in list(unknown.items())[:_SINGLY]:
        message = f"{number} complete events of the unknown category {category[:200]!r} were left out"
        log.note(file, "unknown_category", "warning", clean(message))
