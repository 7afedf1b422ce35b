"""``planewise nightly``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ..campaign import load_campaign
from ..nightly import NightlyReport, run_nightly
from ..output import printable
from ..store import Store
from .options import ProgressCallback, progress_bar, store_option


@click.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_option
@click.option(
    "--campaign",
    "campaign_path",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Campaign manifest: what was planned, and which cohorts to compare.",
)
def nightly(sources: tuple[Path, ...], store_path: Path, campaign_path: Path) -> int:
    """Ingest, qualify and publish SOURCEs, then report the campaign: status, comparisons, hottest activations.

    Running it again publishes nothing anew and says so. A refused source stops nothing; the exit code is then 3.

    \b
    Example: planewise nightly --store /data/store --campaign campaign.json captures/
    """
    campaign = load_campaign(campaign_path)
    store = Store.open(store_path, create=True)
    with ExitStack() as stack:

        def stage(title: str) -> ProgressCallback:
            return stack.enter_context(progress_bar(title))

        report = run_nightly(store, campaign, list(sources), stage)
    for line in summary(report, store):
        click.echo(line)
    refused = any(result.status == "refused" for result in report.ingested)
    return 3 if refused or any(result.status == "refused" for result in report.published) else 0


def summary(report: NightlyReport, store: Store) -> Iterator[str]:
    """The closing lines of a night, for people."""
    yield _counted("ingested", report.ingested, ("ingested", "unchanged", "refused"))
    for result in report.ingested:
        if result.status == "refused":
            yield f"  refused {result.source}: {printable(result.message or '')}"
    yield _counted("qualified", report.qualified, ("valid", "failed", "invalid")) + _already(report)
    yield _published(report)
    status = report.status
    yield (
        f"campaign {printable(status['campaign_id'])}: {status['planned']} planned, {status['published']} published, "
        f"{status['failed']} failed, {status['missing']} missing"
    )
    for comparison in report.comparisons:
        yield from _comparison(comparison)
    yield "hottest activations by observed host time a run (median over valid runs; other metrics rank by themselves):"
    if not report.hottest:
        yield "  none: no valid run recorded an activation"
    for place, row in enumerate(report.hottest, 1):
        yield f"  {place}. {printable(row['name'])}  {_ms(row['median_host_ns'])} ms  ({row['runs']} runs)"
    yield f"store: {store.path}"
    yield "try next:"
    for command in _next_commands(report, store):
        yield f"  {command}"


def _counted(title: str, results: list[Any], statuses: tuple[str, ...]) -> str:
    return f"{title}: " + ", ".join(f"{sum(r.status == s for r in results)} {s}" for s in statuses)


def _already(report: NightlyReport) -> str:
    return "" if report.qualified else " (nothing newly staged)"


def _published(report: NightlyReport) -> str:
    fresh = sum(result.status == "published" for result in report.published)
    already = sum(result.status == "already_published" for result in report.published)
    refused = sum(result.status == "refused" for result in report.published)
    text = (
        f"published: {fresh} new, {already} already published"
        if fresh
        else (f"published: nothing anew, {already} already published")
    )
    return text + (f", {refused} refused" if refused else "")


def _comparison(comparison: dict[str, Any]) -> Iterator[str]:
    head = f"comparison {printable(comparison['name'])}: {comparison['verdict']}"
    interval = comparison["confidence_interval"]
    if interval is None:
        codes = sorted({reason["code"] for reason in comparison["reasons"]})
        yield f"{head} ({', '.join(codes)})"
        return
    percent = comparison["median_delta_percent"]
    change = "" if percent is None else f" ({percent:+.1f}%)"
    yield (
        f"{head}: median {_ms(comparison['baseline']['median_ns'])} -> {_ms(comparison['candidate']['median_ns'])} ms"
        f"{change}, {interval['level']:.0%} interval of the difference "
        f"[{_ms(interval['lower_delta_ns'])}, {_ms(interval['upper_delta_ns'])}] ms, "
        f"{len(comparison['baseline']['samples_ns'])} and {len(comparison['candidate']['samples_ns'])} runs"
    )


def _next_commands(report: NightlyReport, store: Store) -> list[str]:
    prefix = ".venv/bin/planewise" if Path(".venv/bin/planewise").exists() else "planewise"
    bundles = sorted(store.bundle_paths().values())
    bundle = bundles[0] if bundles else store.path / "bundles" / "BUNDLE"
    return [
        f"{prefix} sql 'FROM run_health ORDER BY run_id' --store {store.path}",
        f"{prefix} overview {bundle}",
        f"{prefix} query {bundle} --kind activations",
    ]


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f}"
