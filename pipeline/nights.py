"""What each night found, kept in the store, so that the next one can say what changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..recorder.errors import InputRefused
from .fsio import write_atomic
from .judgement import SLOWER
from .store import Store, run_key
from .tables import TABLES

TABLE = "comparison_nights"


@dataclass(frozen=True)
class Change:
    """One comparison that is slower, or was: ``state`` is new, still_there or fixed (the view ``regressions``).

    The rest is what its last night found: medians in nanoseconds, None for a cohort without runs.
    """

    name: str
    state: str
    night: int = field(compare=False, default=0)
    recorded_at: str = field(compare=False, default="")
    baseline_median_ns: float | None = field(compare=False, default=None)
    candidate_median_ns: float | None = field(compare=False, default=None)


def record_night(
    store: Store, campaign_id: str, comparisons: Sequence[dict[str, Any]], now: datetime | None = None
) -> list[Change]:
    """Append tonight's comparisons to the nights of a campaign; returns what is slower, and what no longer is.

    A comparison over the very runs of its last night is no new night and adds nothing: running the job twice neither
    fixes nor repeats a regression. Raises :class:`InputRefused` when the nights kept so far cannot be read.
    """
    path = store.path / "tables" / TABLE / f"{run_key(campaign_id)}.parquet"
    with store.lock():
        nights = _kept(path)
        fresh = [_row(campaign_id, document, nights, now or datetime.now(UTC)) for document in comparisons]
        added = [row for row in fresh if row is not None]
        if added:
            nights += added
            content = pa.BufferOutputStream()
            pq.write_table(pa.Table.from_pylist(nights, schema=TABLES[TABLE].schema), content)
            write_atomic(path, content.getvalue().to_pybytes())
    return changes(nights, [document["name"] for document in comparisons])


def last_changes(store: Store, campaign_id: str, names: Sequence[str]) -> list[Change]:
    """What the nights that are kept say of the named comparisons; raises as :func:`record_night`."""
    return changes(_kept(store.path / "tables" / TABLE / f"{run_key(campaign_id)}.parquet"), names)


def changes(nights: Sequence[dict[str, Any]], names: Sequence[str]) -> list[Change]:
    """What the last two nights of each comparison say, in the order of the names."""
    found = []
    for name in names:
        own = [row for row in nights if row["comparison_id"] == name]
        last = [row["verdict"] == SLOWER for row in own][-2:]
        state = "still_there" if last == [True, True] else "new" if last[-1:] == [True] else "fixed"
        if any(last):
            told = {key: own[-1][key] for key in ("night", "recorded_at", "baseline_median_ns", "candidate_median_ns")}
            found.append(Change(name, state, **told))
    return found


def _kept(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    try:
        rows: list[dict[str, Any]] = pq.read_table(path).cast(TABLES[TABLE].schema).to_pylist()
        return rows
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputRefused(
            f"holds no nights: {error}",
            source=path,
            code="nights_damaged",
            remedy="restore the file, or remove it to begin again with tonight",
        ) from error


def _row(
    campaign_id: str, document: dict[str, Any], nights: Sequence[dict[str, Any]], now: datetime
) -> dict[str, Any] | None:
    runs = _runs_digest(document)
    own = [row for row in nights if row["comparison_id"] == document["name"]]
    if own and own[-1]["runs_sha256"] == runs and own[-1]["verdict"] == document["verdict"]:
        return None
    interval = document["interval"] or {}
    return {
        "campaign_id": campaign_id,
        "comparison_id": document["name"],
        "night": own[-1]["night"] + 1 if own else 1,
        "recorded_at": now.isoformat(timespec="seconds"),
        "runs_sha256": runs,
        "verdict": document["verdict"],
        "baseline_implementation_id": document["baseline_implementation_id"],
        "candidate_implementation_id": document["candidate_implementation_id"],
        "baseline_median_ns": document["baseline"]["median_ns"],
        "candidate_median_ns": document["candidate"]["median_ns"],
        "lower_delta_ns": interval.get("lower_delta_ns"),
        "upper_delta_ns": interval.get("upper_delta_ns"),
    }


def _runs_digest(document: dict[str, Any]) -> str:
    """A digest over the runs of both cohorts and the rule of the verdict."""
    told = [document["inputs"][cohort] for cohort in ("baseline", "candidate")]
    told += [document["verdict_rule"], document["min_effect_percent"]]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
