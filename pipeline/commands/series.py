"""``planewise series``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...recorder.errors import UsageError
from ..campaign import load_campaign
from ..output import OutputFormat, Rows, write_document, write_rows
from ..series import series_of_bundles, series_of_campaign, with_change_points
from ..stores import StorePlace, open_place
from .options import StorePath, format_option, output_option

COLUMNS = ("capture_step", "run_id", "plane", "label", "metric", "value")


@click.command()
@click.option("--bundle", "bundles", multiple=True, type=click.Path(path_type=Path), help="A bundle; repeat it.")
@click.option(
    "--manifest", type=click.Path(path_type=Path, dir_okay=False), help="Campaign manifest, instead of bundles."
)
@click.option(
    "--store",
    "store_path",
    type=StorePath(),
    envvar="PLANEWISE_STORE",
    help="Store that holds the manifest's planned run ids.",
)
@click.option("--label-prefix", help="Only tensor statistics and gradients whose label starts with this.")
@click.option(
    "--change-points",
    is_flag=True,
    help="Where wall times and tensor statistics change their level, with the confidence (the extra series).",
)
@format_option()
@output_option
def series(
    bundles: tuple[Path, ...],
    manifest: Path | None,
    store_path: StorePlace | None,
    label_prefix: str | None,
    change_points: bool,
    output_format: OutputFormat,
    output: Path | None,
) -> int:
    """Outer wall time, tensor statistics and gradients over capture steps, from bundles or a whole campaign.

    \b
    Example: planewise series --bundle run/step-1 --bundle run/step-2 --label-prefix loss/
    """
    if bool(bundles) == (manifest is not None):
        raise UsageError("give either --bundle or --manifest", remedy="see planewise series --help")
    if manifest is None:
        document = series_of_bundles(list(bundles), label_prefix=label_prefix)
    else:
        find = open_place(store_path).find_bundle if store_path is not None else None
        document = series_of_campaign(load_campaign(manifest), find_bundle=find, label_prefix=label_prefix)
    if change_points:
        document = with_change_points(document)
    if output is not None or output_format is OutputFormat.JSON:
        write_document(document, output)
    else:
        write_rows(Rows(COLUMNS, _lines(document)), output_format)
    return 0


def _lines(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    lines: list[tuple[Any, ...]] = [
        (p["capture_step"], p["run_id"], "spans", None, "outer_wall_time_ns", p["outer_wall_time_ns"])
        for p in document["outer_wall_time"]
    ]
    for label, points in document["tensor_stats"].items():
        for p in points:
            lines += [
                (p["capture_step"], p["run_id"], "tensor_stats", label, metric, p[metric])
                for metric in ("rms", "abs_max", "mean", "non_finite", "elements")
            ]
    for label, points in document["gradients"].items():
        for p in points:
            lines.append((p["capture_step"], p["run_id"], "gradients", label, "state", p["state"]))
            lines.append((p["capture_step"], p["run_id"], "gradients", label, "norm", p["norm"]))
    for change in document.get("change_points", ()):
        level = f"{change['median_before']:g} -> {change['median_after']:g}, confidence {change['confidence']:.4f}"
        lines.append((change["step"], None, change["plane"], change["label"], f"{change['metric']} changes", level))
    return lines
