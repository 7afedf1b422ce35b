"""One run on disk: the folder name of a run id, and what the planes in a run's folder say it is."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..recorder.errors import InputRefused


def run_key(run_id: str) -> str:
    """The folder name of a run: a readable safe prefix and 16 hex digits of a sha256 over the id.

    A run id is data and may hold anything (``/``, ``..``, NUL, any length); its key never does, and never starts with
    a dot.
    """
    digest = hashlib.sha256(run_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    prefix = re.sub(r"[^A-Za-z0-9._-]+", "_", run_id[:200]).lstrip(".-")[:40]
    return f"{prefix or 'run'}-{digest}"


KEY_GLOB = "*-" + "[0-9a-f]" * 16
"""File pattern that every :func:`run_key` matches."""

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*-[0-9a-f]{16}")


def is_run_key(name: str) -> bool:
    """True for a name that :func:`run_key` may have given."""
    return _KEY.fullmatch(name) is not None


@dataclass(frozen=True)
class RunFolder:
    """One run of a store: its folder, and whether that is a published bundle."""

    path: Path
    published: bool

    @property
    def key(self) -> str:
        """The folder's name, ``run_key(run_id)``."""
        return self.path.name

    @property
    def run_id(self) -> str:
        """The run id its planes name; raises :class:`InputRefused` when they cannot be read."""
        return self._provenance[0]

    @property
    def source_digest(self) -> str:
        """Digest of the source it was read from."""
        return self._provenance[1]

    @property
    def parquet_bytes(self) -> int:
        """Size of all its plane files together."""
        return sum(entry.stat().st_size for entry in os.scandir(self.path / "planes"))

    @cached_property
    def _provenance(self) -> tuple[str, str]:
        return read_provenance(self.path)


def read_provenance(folder: Path) -> tuple[str, str]:
    """(run id, source digest) of a run folder's ``runs`` plane; :class:`InputRefused` unless it holds one run."""
    path = folder / "planes" / "runs.parquet"
    try:
        rows = pq.read_table(path, columns=["run_id", "source_digest"], partitioning=None).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise InputRefused(f"the runs plane cannot be read: {error}", source=path, code="unreadable_run") from error
    if len(rows) != 1:
        raise InputRefused(f"found {len(rows)} runs, expected one", source=path, code="not_one_run")
    return rows[0]["run_id"], rows[0]["source_digest"]


def is_regular(path: Path) -> bool:
    """True for an existing regular file, links not followed."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
