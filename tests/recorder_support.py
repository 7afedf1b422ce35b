"""Helpers of the recorder's tests: an unnamed run, and what a capture folder holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from planewise.recorder.families import FAMILIES
from planewise.recorder.profile_run import ProfileRun

TRAINING = ProfileRun.training("demo::train", 3, "cpu")


def rows(folder: Path, family: str) -> list[dict[str, Any]]:
    """Every row of a family, over its shards in their order."""
    shards = sorted(folder.glob(f"{family}-*.parquet"))
    return [row for shard in shards for row in pq.read_table(shard).to_pylist()]


def values(folder: Path, family: str) -> list[dict[str, Any]]:
    """The rows without run_id and seq."""
    return [
        {name: value for name, value in row.items() if name not in ("run_id", "seq")} for row in rows(folder, family)
    ]


def counts(folder: Path) -> dict[str, int]:
    """Rows per family, families without rows left out."""
    found = {family: len(rows(folder, family)) for family in FAMILIES}
    return {family: count for family, count in found.items() if count}


def document(folder: Path, name: str) -> dict[str, Any]:
    """A JSON document of the capture, e.g. ``terminal.json``."""
    return json.loads((folder / name).read_text(encoding="utf-8"))
