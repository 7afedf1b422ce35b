"""Series: outer wall time, tensor statistics and gradients over capture steps (protocol 11.3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from ..recorder.errors import InputRefused, UsageError
from .bundle import second_pass, verify_bundle
from .campaign import Campaign, FindBundle, campaign_status
from .change_points import change_points
from .loose import bundle_connection
from .read_bundle import Verify, load_bundle

SERIES_SCHEMA = "planewise/series/1"

_CONSUMED = tuple(f"planes/{name}.parquet" for name in ("runs", "spans", "tensor_stats", "gradients"))
_VIEWS = ("series_outer_wall_time", "series_tensor_stats", "series_gradients")
_WALL_TIME = "SELECT capture_step, run_id, outer_wall_time_ns FROM series_outer_wall_time ORDER BY capture_step, run_id"
# Text orders by its UTF-8 bytes, so the labels come out key-sorted; an empty prefix starts every label.
_TENSOR_STATS = """
    SELECT label, capture_step, run_id, rms, abs_max, mean, non_finite, elements
    FROM series_tensor_stats WHERE starts_with(label, ?) ORDER BY label, capture_step, run_id, seq
"""
_GRADIENTS = """
    SELECT parameter, capture_step, run_id, state, norm
    FROM series_gradients WHERE starts_with(parameter, ?) ORDER BY parameter, capture_step, run_id, seq
"""


def series_of_bundles(
    bundles: Sequence[str | Path], *, label_prefix: str | None = None, verify: Verify = verify_bundle
) -> dict[str, Any]:
    """The ``planewise/series/1`` document of some published bundles of one entrypoint and phase.

    Each is verified deeply; failed captures take part. ``label_prefix`` keeps the labels of tensor statistics and the
    ``root/key`` of gradients that start with it; inputs and wall times are never filtered.

    Raises
    ------
    UsageError
        There is no bundle.
    VerificationFailed
        A bundle is not what its manifest says.
    InputRefused
        A bundle cannot be read as one run. Then, in input order: another entrypoint or phase than the first bundle, or
        a capture step or run id seen before.
    """
    if not bundles:
        raise UsageError("a series needs at least one bundle", code="no_bundles", remedy="name some bundles")
    loaded = [load_bundle(bundle, verify) for bundle in bundles]
    runs = [item.run.to_pylist()[0] for item in loaded]
    _check_runs(bundles, runs)
    con = bundle_connection([item.path for item in loaded], only=_VIEWS)
    try:
        points = _points(con, label_prefix or "")
    finally:
        con.close()
    for item in loaded:
        second_pass(item.path, item.receipt, [name for name in _CONSUMED if (item.path / name).exists()])
    inputs = [
        {
            "capture_step": run["capture_step"],
            "run_id": run["run_id"],
            "bundle": str(bundle),
            "manifest_sha256": item.receipt.manifest_sha256,
        }
        for bundle, run, item in zip(bundles, runs, loaded, strict=True)
    ]
    return {
        "schema": SERIES_SCHEMA,
        "entrypoint": runs[0]["entrypoint"],
        "coordinate": "capture_step",
        "label_prefix": label_prefix,
        "inputs": sorted(inputs, key=lambda item: item["capture_step"]),
        **points,
    }


def series_of_campaign(
    campaign: Campaign,
    *,
    base_dir: Path | None = None,
    find_bundle: FindBundle | None = None,
    label_prefix: str | None = None,
    verify: Verify = verify_bundle,
) -> dict[str, Any]:
    """The series over all planned captures of a campaign.

    Raises :class:`InputRefused` unless every planned capture is published, listing step, bundle and state of those
    that are not (protocol 13.2), and what :func:`series_of_bundles` raises.
    """
    status = campaign_status(campaign, base_dir=base_dir, find_bundle=find_bundle, verify=verify)
    unpublished = [row for row in status["captures"] if row["state"]["state"] != "published"]
    if unpublished:
        listed = "; ".join(
            f"step {row['capture_step']}, {row['bundle'] or row.get('run_id')}: {row['state']['state']}"
            for row in unpublished
        )
        raise InputRefused(
            f"{len(unpublished)} of {status['planned']} planned captures are not published: {listed}",
            source=campaign.campaign_id,
            code="not_published",
            remedy="publish them, or name the bundles one by one",
        )
    folder = base_dir or campaign.base_dir
    return series_of_bundles(
        [folder / row["bundle"] for row in status["captures"]], label_prefix=label_prefix, verify=verify
    )


def with_change_points(document: dict[str, Any]) -> dict[str, Any]:
    """A series document with ``change_points``: of outer wall times, and of the rms of each label.

    Points without a value are none. Raises what :func:`~planewise.pipeline.change_points.change_points` raises.
    """
    found = [
        {"plane": "spans", "label": None, "metric": "outer_wall_time_ns", **change}
        for change in change_points(_values(document["outer_wall_time"], "outer_wall_time_ns"))
    ]
    for label, points in document["tensor_stats"].items():
        changes = change_points(_values(points, "rms"))
        found += [{"plane": "tensor_stats", "label": label, "metric": "rms", **change} for change in changes]
    return {**document, "change_points": found}


def _values(points: Sequence[dict[str, Any]], name: str) -> list[tuple[int, float]]:
    return [(point["capture_step"], float(point[name])) for point in points if point[name] is not None]


def _check_runs(bundles: Sequence[str | Path], runs: list[dict[str, Any]]) -> None:
    steps: set[int] = set()
    run_ids: set[str] = set()
    for bundle, run in zip(bundles, runs, strict=True):
        for name in ("entrypoint", "phase"):
            if run[name] != runs[0][name]:
                raise InputRefused(
                    f"has {name} {run[name]!r}, the first bundle has {runs[0][name]!r}",
                    source=bundle,
                    code=f"mixed_{name}",
                    remedy="make one series for each",
                )
        if run["capture_step"] in steps:
            raise InputRefused(f"repeats capture step {run['capture_step']}", source=bundle, code="repeated_step")
        if run["run_id"] in run_ids:
            raise InputRefused(f"repeats run id {run['run_id']!r}", source=bundle, code="repeated_run_id")
        steps.add(run["capture_step"])
        run_ids.add(run["run_id"])


def _points(con: duckdb.DuckDBPyConnection, prefix: str) -> dict[str, Any]:
    return {
        "outer_wall_time": _records(con.execute(_WALL_TIME)),
        "tensor_stats": _by_label(_records(con.execute(_TENSOR_STATS, [prefix]))),
        "gradients": _by_label(_records(con.execute(_GRADIENTS, [prefix]))),
    }


def _records(result: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    names = [item[0] for item in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _by_label(points: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The points of each label, keyed by the first column of the rows, in their order."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        key = next(iter(point))
        grouped.setdefault(point.pop(key), []).append(point)
    return grouped
