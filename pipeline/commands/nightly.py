"""``planewise nightly``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from ...recorder.errors import CheckFailed
from ..campaign import load_campaign
from ..campaign_manifest import OWN_SCHEMA
from ..judgement import INELIGIBLE, Rules
from ..nightly import REPORT, NightlyReport, run_nightly
from ..nights import Change
from ..output import printable
from ..progress import Progress
from ..side_by_side import Jobs
from ..store import Store
from ..stores import StorePlace, open_place
from ..summary import append_summary
from .options import Share, jobs_option, progress_bar, store_option, stray_text, viewer_option


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
@click.option("--min-effect", type=Share(), help="Smallest change that matters in the comparisons, e.g. 1%.")
@click.option("--protocol-verdict", is_flag=True, help="Let the protocol's bootstrap interval decide.")
@click.option("--require-eligible", is_flag=True, help="Exit with 1 when a comparison's runs do not qualify.")
@click.option(
    "--fail-on",
    type=click.Choice(["slower", "regression"]),
    help="Exit with 1 when a candidate is slower; with regression, only when it was not the night before.",
)
@viewer_option
@jobs_option
@click.option(
    "--summary-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append the comparisons in GitHub-flavoured Markdown to this file, e.g. $GITHUB_STEP_SUMMARY.",
)
def nightly(
    sources: tuple[Path, ...],
    store_path: StorePlace,
    campaign_path: Path,
    min_effect: float | None,
    protocol_verdict: bool,
    require_eligible: bool,
    fail_on: str | None,
    viewers: bool,
    jobs: Jobs,
    summary_file: Path | None,
) -> int:
    """Ingest, qualify and publish SOURCEs, then report the campaign: status, comparisons, hottest activations.

    Running it again publishes nothing anew and says so. A refused source stops nothing; the exit code is then 3. What
    is slower than the night before, still slower, or fixed, is named and kept (the view regressions); a night counts
    when its runs are other ones.

    \b
    Example: planewise nightly --store /data/store --campaign campaign.json captures/
    """
    campaign = load_campaign(campaign_path)
    store = open_place(store_path, create=True)
    with ExitStack() as stack:

        def stage(title: str) -> Progress:
            return stack.enter_context(progress_bar(title))

        rules = Rules(min_effect, protocol_verdict)
        report = run_nightly(store, campaign, list(sources), stage, rules, viewers=viewers, jobs=jobs)
    for line in summary(report, store):
        click.echo(line)
    if summary_file is not None:
        append_summary(summary_file, campaign.campaign_id, report.comparisons, map(_changed, report.changes))
    _check(report, require_eligible=require_eligible, fail_on=fail_on)
    stages = (report.ingested, report.qualified, report.published)
    return 3 if any(result.status == "refused" for stage in stages for result in stage) else 0


def _check(report: NightlyReport, *, require_eligible: bool, fail_on: str | None) -> None:
    """Raise :class:`CheckFailed` for what the caller asked to be failed on."""
    ineligible = [document["name"] for document in report.comparisons if document["verdict"] == INELIGIBLE]
    if require_eligible and ineligible:
        raise CheckFailed(f"not eligible: {', '.join(ineligible)}", remedy="the reasons say what to record")
    states = {"slower": ("new", "still_there"), "regression": ("new",)}.get(fail_on or "", ())
    slower = [change.name for change in report.changes if change.state in states]
    if slower:
        raise CheckFailed(f"slower: {', '.join(slower)}", remedy="the intervals say by how much")


def _changed(change: Change) -> str:
    words = {"new": "slower since tonight", "still_there": "still slower", "fixed": "no longer slower"}
    return f"{printable(change.name)}: {words[change.state]}"


def summary(report: NightlyReport, store: Store) -> Iterator[str]:
    """The closing lines of a night, for people."""
    yield from map(stray_text, store.strays())
    yield _counted("ingested", report.ingested, ("ingested", "unchanged", "refused"))
    yield from _refused(report.ingested, "source")
    yield _counted("qualified", report.qualified, ("valid", "failed", "invalid", "refused")) + _already(report)
    yield from _refused(report.qualified, "run_id")
    yield _published(report)
    # A run that could not be qualified is refused by publish for the same reason, which is told once.
    known = {result.run_id for result in report.qualified if result.status == "refused"}
    yield from _refused([result for result in report.published if result.run_id not in known], "run_id")
    status = report.status
    yield (
        f"campaign {printable(status['campaign_id'])}: {status['planned']} planned, {status['published']} published, "
        f"{status['failed']} failed, {status['missing']} missing"
    )
    if not report.comparisons:
        yield _no_comparisons(report)
    for name in report.without_candidate:
        yield f"comparison {printable(name)}: no other implementation has a complete run under those conditions"
    for comparison in report.comparisons:
        yield from _comparison(comparison)
    for change in report.changes:
        yield f"  {_changed(change)}"
    yield "hottest activations by observed host time a run (median over valid runs; other metrics rank by themselves):"
    if not report.hottest:
        yield "  none: no valid run recorded an activation"
    for place, row in enumerate(report.hottest, 1):
        yield f"  {place}. {printable(row['name'])}  {_ms(row['median_host_ns'])} ms  ({row['runs']} runs)"
    yield f"report: {report.folder / REPORT}"
    yield f"store: {store.address}"
    yield "try next:"
    for command in _next_commands(report, store):
        yield f"  {command}"


def _counted(title: str, results: list[Any], statuses: tuple[str, ...]) -> str:
    return f"{title}: " + ", ".join(f"{sum(r.status == s for r in results)} {s}" for s in statuses)


def _refused(results: list[Any], subject: str) -> Iterator[str]:
    for result in results:
        if result.status == "refused":
            name, message = printable(getattr(result, subject)), printable(result.message or "")
            yield f"  refused {message.removeprefix(f'{name}: ') if message.startswith(name) else message} [{name}]"


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


def _no_comparisons(report: NightlyReport) -> str:
    if report.schema == OWN_SCHEMA:
        return "comparisons: none" if report.without_candidate else "comparisons: the manifest declares none"
    return (
        f"comparisons: a manifest of schema {report.schema} can declare none; it plans bundles by their paths, "
        f"and {OWN_SCHEMA} plans run ids of the store and compares cohorts"
    )


def _comparison(comparison: dict[str, Any]) -> Iterator[str]:
    head = f"comparison {printable(comparison['name'])}: {comparison['verdict']}"
    left_out = sum(len(runs) for runs in comparison["left_out"].values())
    if left_out:
        head = f"{head} ({left_out} failed or interrupted runs left out)"
    interval = comparison["interval"] or comparison["confidence_interval"]
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
    for row in comparison["labels"]:
        word = "more" if row["verdict"] == "candidate_higher" else "less"
        change = f"{_ms(row['baseline_median'])} -> {_ms(row['candidate_median'])} ms"
        p = row[f"p_{comparison['labels_adjust']}"]
        yield f"  {word} host time in {printable(row['label'])}: {change}, adjusted p {p:.2g}"
    if comparison["runs_needed"]:
        yield f"  {comparison['runs_needed']} runs a cohort would settle it"
    for finding in comparison["findings"]:
        yield f"  {finding['code']}: {printable(finding['message'])}"


def _next_commands(report: NightlyReport, store: Store) -> list[str]:
    prefix = ".venv/bin/planewise" if Path(".venv/bin/planewise").exists() else "planewise"
    bundle = report.example or store.path / "bundles" / "BUNDLE"
    return [
        f"{prefix} sql 'FROM run_health ORDER BY run_id' --store {shlex.quote(store.address)}",
        f"{prefix} overview {shlex.quote(str(bundle))}",
        f"{prefix} query {shlex.quote(str(bundle))} --kind activations",
    ]


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f}"
