"""The page of a campaign: what was planned and is there, what its comparisons found, what changed since last night."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..campaign_manifest import Campaign
from ..nights import Change
from . import charts
from .campaign_data import captures, night_documents
from .html import rendered

_LOOKS = {"candidate_faster": "good", "candidate_slower": "bad", "no_relevant_change": "good"}
_STATES = {"new": "slower since the last night", "still_there": "still slower", "fixed": "no longer slower"}
MOST_CAPTURES = 2_000
"""Captures that the matrix shows; of more, those that are not published come first."""
MOST_LABELS = 20


def campaign_page(
    store: Path, campaign: Campaign, page: Path, times: list[dict[str, Any]], changes: Sequence[Change]
) -> str:
    """The HTML of a campaign's last night in ``store``; ``page`` is where it will lie, for links into bundles.

    ``times`` are the wall times of its valid runs (:func:`~.campaign_data.wall_times`). Raises as
    :func:`~.campaign_data.night_documents`.
    """
    status, comparisons, _ = night_documents(store, campaign.campaign_id)
    planned = captures(status, campaign.base_dir, page)
    shown = sorted(planned, key=lambda row: row["state"] == "published")[:MOST_CAPTURES]
    return rendered(
        "campaign.html.j2",
        status=status,
        captures={
            "rows": shown,
            "total": len(planned),
            "displayed": len(shown),
            "truncated": len(shown) < len(planned),
        },
        series=_series(times),
        comparisons=[_comparison(document) for document in comparisons],
        changes=[{"change": change, "told": _STATES[change.state]} for change in changes],
    )


def _series(times: list[dict[str, Any]]) -> Markup | None:
    placed = [{**row, "implementation": charts.named(row["implementation"])} for row in times if row["time"]]
    if not placed:
        return None
    implementations = sorted({row["implementation"] for row in placed})
    label = f"Outer wall time of {len(placed)} runs over the time of their capture, by implementation."
    return Markup(charts.over_time(placed, implementations, label))


def _comparison(document: dict[str, Any]) -> dict[str, Any]:
    rows = [
        {"cohort": cohort, "ms": ns / 1e6}
        for cohort in ("baseline", "candidate")
        for ns in document[cohort]["samples_ns"] or []
    ]
    label = f"Outer wall time of every run of {document['name']}: " + ", ".join(
        f"{cohort} median {(document[cohort]['median_ns'] or 0) / 1e6:.3f} ms" for cohort in ("baseline", "candidate")
    )
    labels = document.get("labels") or []
    return {
        "document": document,
        "look": _LOOKS.get(document["verdict"], "warn"),
        "verdict": document["verdict"].replace("_", " "),
        "samples": Markup(charts.samples(rows, label)) if rows else None,
        "interval": _interval(document),
        "labels": {"rows": labels[:MOST_LABELS], "total": len(labels), "displayed": min(len(labels), MOST_LABELS),
                   "truncated": len(labels) > MOST_LABELS},
    }  # fmt: skip


def _interval(document: dict[str, Any]) -> Markup | None:
    found = document.get("interval")
    if not found:
        return None
    lower, upper = found["lower_delta_ns"] / 1e6, found["upper_delta_ns"] / 1e6
    estimate = found.get("estimate_ns", document["median_delta_ns"])
    label = f"95 % interval of the difference: {lower:.3f} to {upper:.3f} ms; 0 is no difference."
    return Markup(charts.interval(lower, (estimate or 0) / 1e6, upper, label))
