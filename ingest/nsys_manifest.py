"""The manifest of a flat folder of Nsight artifacts (``nsight-capture/1``), and what its folder says against it.

Nothing here refuses a folder: a bad manifest never hides reports that can be read (protocol 12.4). Every fault is a
code and a sentence. What needs the trace that the folder belongs to, its ids and its contract, is judged elsewhere.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

MANIFEST = "capture-manifest.json"
SCHEMA = "candle-graph/nsight-capture/1"
RAW_REPORT = ".nsys-rep"
LARGEST_MANIFEST = 16 << 20

Size = Annotated[int, msgspec.Meta(ge=0)]


class Run(msgspec.Struct):
    """The run that was captured, by the id of its own trace."""

    id: str
    started_at: str | None = None


class Correlation(msgspec.Struct):
    """The id that labels and trace share."""

    id: str


class Tool(msgspec.Struct):
    """The profiler."""

    name: str
    version: str


class Hardware(msgspec.Struct):
    """Where it ran."""

    host: str | None = None
    devices: list[str] = []


class Artifact(msgspec.Struct):
    """One file of the folder; ``sha256`` is plain hex, its case does not matter."""

    path: str
    size_bytes: Size
    sha256: str


class Manifest(msgspec.Struct):
    """``capture-manifest.json`` (protocol 12.1)."""

    schema: str
    run: Run
    correlation: Correlation
    tool: Tool
    commands: list[str]
    hardware: Hardware
    source_revisions: dict[str, str]
    required_semantic_labels: list[str]
    artifacts: list[Artifact]
    gpu_expected_semantic_labels: list[str] = []
    cpu_only_semantic_labels: list[str] = []

    @property
    def gpu_expected(self) -> list[str]:
        """The labels whose ranges are expected to hold device work: all that are required when no class is given."""
        if not self.gpu_expected_semantic_labels and not self.cpu_only_semantic_labels:
            return self.required_semantic_labels
        return self.gpu_expected_semantic_labels


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a manifest or with its folder: a stable code and a sentence."""

    code: str
    message: str
    file: str = MANIFEST


def read_manifest(folder: Path) -> tuple[Manifest | None, Fault | None]:
    """The manifest of a folder, or why there is none that can be read."""
    path = folder / MANIFEST
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            return None, Fault("manifest_unreadable", f"it is larger than {LARGEST_MANIFEST} bytes")
        data = path.read_bytes()
    except FileNotFoundError:
        return None, Fault("manifest_missing", "the folder has no manifest, so nothing says what was captured")
    except OSError as error:
        return None, Fault("manifest_unreadable", f"it cannot be read: {error.strerror}")
    try:
        return msgspec.json.decode(data, type=Manifest), None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return None, Fault("manifest_unreadable", f"it is no manifest: {str(error)[:200]}")


def manifest_faults(folder: Path, manifest: Manifest, used: Sequence[str]) -> Iterator[Fault]:
    """Every mismatch of protocol 12.4 that the folder alone shows; ``used`` are the reports that were read."""
    if manifest.schema != SCHEMA:
        yield Fault("manifest_schema", f"found schema {manifest.schema[:80]!r}, expected {SCHEMA!r}")
    if not any(name.endswith(RAW_REPORT) for name in used):
        yield Fault("raw_report_missing", f"the folder keeps no *{RAW_REPORT}, the report that all others come from")
    for name in ("required_semantic_labels", "gpu_expected_semantic_labels", "cpu_only_semantic_labels"):
        for label in _repeated(getattr(manifest, name)):
            yield Fault("label_repeated", f"{name} lists {label[:80]!r} more than once")
    declared = [artifact.path for artifact in manifest.artifacts]
    for path in _repeated(declared):
        yield Fault("artifact_repeated", f"declares {path[:80]!r} more than once")
    for artifact in manifest.artifacts:
        yield from _artifact_faults(folder, artifact)
    for name in used:
        if name not in declared:
            yield Fault("artifact_undeclared", "the manifest does not declare this file", name)


def _repeated(values: Sequence[str]) -> list[str]:
    return [value for value, times in Counter(values).items() if times > 1]


def _artifact_faults(folder: Path, artifact: Artifact) -> Iterator[Fault]:
    name = artifact.path
    if not is_safe(name):
        yield Fault("artifact_path", f"declares {name[:80]!r}, which is no safe path inside the folder")
        return
    path = folder / name
    try:
        if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            yield Fault("artifact_missing", "the manifest declares this file, and it is not there", name)
            return
        size, digest = _digest(path)
    except (OSError, ValueError) as error:
        yield Fault("artifact_missing", f"the manifest declares this file, and it cannot be read: {error}"[:200], name)
        return
    if size != artifact.size_bytes:
        yield Fault("artifact_size", f"found {size} bytes, the manifest says {artifact.size_bytes}", name)
    if digest != artifact.sha256.lower():
        yield Fault("artifact_digest", f"found sha256 {digest}, the manifest says {artifact.sha256[:80]}", name)


def is_safe(path: str) -> bool:
    """True for a relative path of real names; a backslash is a character like others here (protocol 12.4)."""
    return (
        not path.startswith("/") and "\0" not in path and all(part not in ("", ".", "..") for part in path.split("/"))
    )


def _digest(path: Path) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()
