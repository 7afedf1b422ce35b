"""Text of memory snapshots: the one frame that stands for a stack, categories, settings.

A pickle may repeat a container by reference until its text has no end, so only plain text and numbers are spelt out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

_MACHINERY = (
    *("CachingAllocator", "CachingHostAllocator", "PluggableAllocator", "::malloc"),
    *("torch::unwind", "CapturedTraceback", "gather_with_cpp"),
    *("c10::intrusive_ptr", "c10::TensorImpl", "c10::StorageImpl", "c10::impl::wrap_kernel_functor", "std::vector<"),
    *(
        "::empty_",
        "::empty(",
        "::new_empty",
        "::create_out",
        "::wrapper_CUDA_",
        "::wrapper_PrivateUse1_",
        "::resize_bytes",
    ),
)
"""Parts of the names of native frames that stand above every allocation: allocators, the capture of the stack,
reference counts, and torch's factories of empty tensors. What is below them asked for the memory."""
_LONGEST = 1000


class Frames:
    """Frames of one snapshot. Stacks are shared between records, so each is looked through once."""

    def __init__(self) -> None:
        self.saw_npu = False
        self._tops: dict[int, str | None] = {}
        self._texts: dict[int, tuple[bool, str | None]] = {}

    def look(self, records: Iterable[Any]) -> None:
        """Find out whether torch_npu made the snapshot, which nothing but its frames tells."""
        seen: set[int] = set()
        for record in records:
            frames = record.get("frames") if isinstance(record, Mapping) else None
            if isinstance(frames, list) and id(frames) not in seen:
                seen.add(id(frames))
                self.saw_npu = any(_names_npu(frame, seen) for frame in frames)
                if self.saw_npu:
                    return

    def top(self, frames: Any) -> str | None:
        """``file:line function`` of the innermost Python frame; without one, of the innermost native frame that is not
        of the machinery above every allocation. None without such a frame."""
        if not isinstance(frames, list) or not frames:
            return None
        key = id(frames)  # The snapshot holds every list and frame until it is read, so an id is never used twice.
        if key not in self._tops:
            self._tops[key] = self._top(frames)
        return self._tops[key]

    def _top(self, frames: list[Any]) -> str | None:
        native = None
        for frame in frames:
            key = id(frame)
            if key not in self._texts:
                self._texts[key] = _spelt(frame)
            is_python, text = self._texts[key]
            if is_python:
                return text
            native = native or text
        return native


def _spelt(frame: Any) -> tuple[bool, str | None]:
    """Whether it is a Python frame, and its text; None for what is no frame and for the machinery."""
    if not isinstance(frame, Mapping):
        return False, None
    file, name, line = plain_text(frame.get("filename")), plain_text(frame.get("name")), frame.get("line", 0)
    text = f"{file}:{line if type(line) is int else 0} {name}"
    if file.endswith(".py") or file.startswith("<"):
        return True, text
    return False, text if name and not any(mark in name for mark in _MACHINERY) else None


def _names_npu(frame: Any, seen: set[int]) -> bool:
    """Frames are shared between stacks; each is looked at once, and remembered in ``seen``."""
    if id(frame) in seen or not isinstance(frame, Mapping):
        return False
    seen.add(id(frame))
    file = frame.get("filename")
    return isinstance(file, str) and "torch_npu" in file


def plain_text(value: Any) -> str:
    """A text, bounded, and without lone surrogates, which no Parquet file can hold; empty for anything else."""
    return value[:_LONGEST].encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def category(record: Mapping[str, Any]) -> str | None:
    """The category a record names: torch's own (snapshots of a profile) or the user's metadata; None without one."""
    return plain_text(record.get("category")) or plain_text(record.get("user_metadata")) or None


def settings_tags(settings: Any) -> dict[str, str]:
    """The allocator's settings as tags: one a setting, a table of settings as one JSON object."""
    if not isinstance(settings, Mapping):
        return {}
    found = {plain_text(name): _setting(value) for name, value in list(settings.items())[:100]}
    return {f"allocator_settings.{name}": value for name, value in found.items() if name and value is not None}


def _setting(value: Any) -> str | None:
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        plain = {plain_text(key): item for key, item in list(value.items())[:100] if isinstance(item, int | float)}
        return json.dumps(plain)
    return None
