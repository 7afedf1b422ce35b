"""What the page of a campaign shows: the documents of its last night, and the runs of the store."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb

from ...recorder.errors import InputRefused
from ..store import run_key

_RUNS = """
    SELECT
        r.run_id,
        coalesce(r.comparison_identity.implementation_id, 'not recorded') AS implementation,
        r.timestamp,
        w.outer_wall_time_ns / 1e6 AS ms
    FROM runs AS r JOIN outer_wall_time AS w USING (run_id) JOIN run_health AS h USING (run_id)
    WHERE r.run_id IN (SELECT unnest(?)) AND w.outer_wall_time_ns IS NOT NULL AND h.status = 'valid'
    ORDER BY r.timestamp, r.run_id
"""
WALL_TIME_VIEWS = ("outer_wall_time", "run_health")


def night_documents(store: Path, campaign_id: str) -> tuple[dict[str, Any], list[dict[str, Any]], Path]:
    """The status and the comparisons that the last night wrote, and their folder.

    Raises :class:`InputRefused` when there was no night, or its documents cannot be read.
    """
    folder = store / "campaigns" / run_key(campaign_id)
    try:
        status = json.loads((folder / "status.json").read_bytes())
        comparisons = [json.loads(path.read_bytes()) for path in sorted(folder.glob("comparison-*.json"))]
    except FileNotFoundError:
        raise InputRefused(
            f"has no night of the campaign {campaign_id!r:.80}",
            source=store,
            code="no_night",
            remedy="run planewise nightly with this campaign first",
        ) from None
    except ValueError as error:
        raise InputRefused(f"is no JSON: {error}", source=folder, code="bad_json", remedy="run nightly again") from None
    return status, sorted(comparisons, key=lambda document: str(document["name"])), folder


def captures(status: dict[str, Any], base_dir: Path, page: Path) -> list[dict[str, Any]]:
    """One row per planned capture: its name, step, state and message, and the address of its own page from ``page``.

    ``href`` is None where there is none. Bundles that the manifest names by a path lie below ``base_dir``.
    """
    rows = []
    for planned in status["captures"]:
        state = planned["state"]
        name = planned.get("run_id") or state.get("run_id") or planned.get("bundle")
        message = state.get("message") or state.get("reason")
        rows.append(
            {
                "name": name,
                "step": planned["capture_step"],
                "state": state["state"],
                "message": message,
                "href": _viewer(planned.get("bundle"), base_dir, page),
            }
        )
    return rows


def _viewer(bundle: str | None, base_dir: Path, page: Path) -> str | None:
    if not bundle or not (base_dir / bundle / "viewer.html").is_file():
        return None
    return os.path.relpath((base_dir / bundle).resolve() / "viewer.html", page.parent.resolve())


def wall_times(con: duckdb.DuckDBPyConnection, run_ids: list[str]) -> list[dict[str, Any]]:
    """Outer wall time of the valid runs, in order of their capture."""
    found = con.execute(_RUNS, [run_ids]).fetchall()
    return [dict(zip(("run", "implementation", "time", "ms"), row, strict=True)) for row in found]
