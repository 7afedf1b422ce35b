"""``planewise compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...recorder.errors import CheckFailed, UsageError
from ..bundle import refuse_output_inside_bundle
from ..compare import compare_bundles
from ..families import FamilyRules, compare_metric_bundles
from ..judgement import SLOWER, Rules
from ..metrics import METRICS
from ..multiple import ADJUSTMENTS
from ..output import OutputFormat, Rows, write_document, write_rows
from ..stores import StorePlace, open_place
from ..summary import append_family, append_summary
from ..untrusted import lock_down, members_where
from .compare_family import check_family, write_family
from .options import Share, StorePath, format_option, note, output_option


@click.command()
@click.option("--baseline", "baseline", multiple=True, type=click.Path(path_type=Path), help="A bundle; repeat it.")
@click.option("--candidate", "candidate", multiple=True, type=click.Path(path_type=Path), help="A bundle; repeat it.")
@click.option(
    "--baseline-where",
    help="SQL predicate over the view runs of --store, instead of --baseline.",
)
@click.option(
    "--candidate-where",
    help="SQL predicate over the view runs of --store, instead of --candidate.",
)
@click.option(
    "--store",
    "store_path",
    type=StorePath(),
    envvar="PLANEWISE_STORE",
    help="Store of the predicates; only its published, complete captures take part.",
)
@click.option(
    "--min-effect",
    type=Share(),
    help="Smallest change that matters, e.g. 1%; an interval wholly inside it is no_relevant_change.",
)
@click.option(
    "--metric",
    type=click.Choice(sorted(METRICS)),
    help="Compare this number instead: one question per label, p values adjusted for how many there are.",
)
@click.option("--label-prefix", default="", help="Only labels of --metric that begin so.")
@click.option(
    "--adjust",
    type=click.Choice(sorted(ADJUSTMENTS)),
    help="Which p of --metric decides: "
    + "; ".join(f"{name} {doc}" for name, doc in sorted(ADJUSTMENTS.items()))
    + ". By default holm, or joint where the runs are too few for it.",
)
@click.option("--protocol-verdict", is_flag=True, help="Let the protocol's bootstrap interval decide.")
@click.option("--require-eligible", is_flag=True, help="Exit with 1 when the runs do not qualify for a comparison.")
@click.option(
    "--fail-on",
    type=click.Choice(["slower"]),
    help="Exit with 1 when the candidate is slower; with --metric, when a label takes more time or bytes.",
)
@click.option(
    "--summary-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append a summary in GitHub-flavoured Markdown to this file, e.g. $GITHUB_STEP_SUMMARY.",
)
@format_option()
@output_option
def compare(
    baseline: tuple[Path, ...],
    candidate: tuple[Path, ...],
    baseline_where: str | None,
    candidate_where: str | None,
    store_path: StorePlace | None,
    min_effect: float | None,
    metric: str | None,
    label_prefix: str,
    adjust: str | None,
    protocol_verdict: bool,
    require_eligible: bool,
    fail_on: str | None,
    summary_file: Path | None,
    output_format: OutputFormat,
    output: Path | None,
) -> int:
    """Is the candidate faster than the baseline? Outer wall time of two cohorts of verified bundles.

    The verdict is ineligible unless every rule holds: five runs a cohort, valid and complete captures, one identity,
    production-equivalent scope, synchronised devices. Each rule that does not hold is listed by its code. The interval
    is exact by ranks; an open verdict says how many runs a cohort would settle it, and findings say what the order of
    the captures speaks against it.

    \b
    Examples:
      planewise compare --baseline a/1 --baseline a/2 ... --candidate b/1 ...
      planewise compare --store S --baseline-where "comparison_identity.implementation_id = 'git:1'" \\
          --candidate-where "comparison_identity.implementation_id = 'git:2'"
      planewise compare ... --metric host_self_time --label-prefix train/ --adjust joint --min-effect 2%
    """
    _check_use(metric, label_prefix, adjust, protocol_verdict, fail_on)
    cohorts = [
        _cohort("baseline", baseline, baseline_where, store_path),
        _cohort("candidate", candidate, candidate_where, store_path),
    ]
    if output is not None:
        for bundle in (*cohorts[0], *cohorts[1]):
            refuse_output_inside_bundle(output, bundle)
    if metric is not None:
        rules = FamilyRules(label_prefix, adjust, min_effect)
        found = compare_metric_bundles(cohorts[0], cohorts[1], metric, rules)
        write_family(found, output_format, output)
        if summary_file is not None:
            append_family(summary_file, "Comparison by label", found)
        check_family(found, require_eligible=require_eligible, fail_on=fail_on)
        return 0
    document = compare_bundles(*cohorts, rules=Rules(min_effect, protocol_verdict))
    if output is not None or output_format is OutputFormat.JSON:
        write_document(document, output)
    else:
        write_rows(Rows(("name", "value"), _lines(document)), output_format)
    codes = sorted({reason["code"] for reason in document["reasons"]})
    note(f"verdict: {document['verdict']}" + (f" ({', '.join(codes)})" if codes else ""))
    for finding in document["findings"]:
        note(f"{finding['code']}: {finding['message']}")
    if summary_file is not None:
        append_summary(summary_file, "Comparison", [document])
    if fail_on == "slower" and document["verdict"] == SLOWER:
        raise CheckFailed("the candidate is slower", remedy="the interval says by how much")
    if require_eligible and document["verdict"] == "ineligible":
        raise CheckFailed(
            f"the comparison is not eligible: {', '.join(codes)}", remedy="the reasons say what to record"
        )
    return 0


def _check_use(
    metric: str | None, label_prefix: str, adjust: str | None, protocol_verdict: bool, fail_on: str | None
) -> None:
    """Raise :class:`UsageError` for options that do not go together."""
    if metric is None and (label_prefix or adjust):
        raise UsageError("--label-prefix and --adjust need --metric", remedy="name the number to compare by label")
    if metric is not None and protocol_verdict:
        raise UsageError("the protocol has no verdict for labels", remedy="leave --protocol-verdict or --metric out")
    if metric is not None and fail_on and METRICS[metric].unit not in ("ns", "bytes"):
        raise UsageError(f"more of {metric} is not slower", remedy="leave --fail-on out and read the verdicts")


def _cohort(name: str, bundles: tuple[Path, ...], where: str | None, store_path: StorePlace | None) -> list[Path]:
    if bool(bundles) == (where is not None):
        raise UsageError(f"give either --{name} bundles or --{name}-where", remedy="see planewise compare --help")
    if where is None:
        return list(bundles)
    if store_path is None:
        raise UsageError(f"--{name}-where needs --store", remedy="name the store whose runs it selects")
    store = open_place(store_path)
    con = store.connect()
    try:
        lock_down(con, [store.address])
        chosen = members_where(con, where)
    finally:
        con.close()
    if chosen.left_out:
        note(f"{name}: {len(chosen.left_out)} selected runs failed or were interrupted and take no part")
    found = [store.find_bundle(run_id) for run_id in chosen.complete]
    published = [path for path in found if path is not None]
    if len(published) < len(found):
        note(f"{name}: {len(found) - len(published)} selected runs are not published and take no part")
    return published


def _lines(document: dict[str, Any]) -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = [
        (name, document[name])
        for name in (
            "verdict",
            "metric",
            "paired",
            "baseline_implementation_id",
            "candidate_implementation_id",
            "median_delta_ns",
            "median_delta_percent",
        )
    ]
    for cohort in ("baseline", "candidate"):
        lines += [
            (f"{cohort} {name}", document[cohort][name]) for name in ("median_ns", "p95_ns", "mad_ns", "samples_ns")
        ]
    for title, name in (("95% interval of the difference", "interval"), ("protocol's interval", "confidence_interval")):
        interval = document[name]
        lines.append((title, interval and [interval["lower_delta_ns"], interval["upper_delta_ns"]]))
    lines += [(name, document[name]) for name in ("verdict_by_protocol", "runs_needed", "design")]
    lines += [(f"finding {finding['code']}", finding["message"]) for finding in document["findings"]]
    lines += [(f"reason {reason['code']}", reason["message"]) for reason in document["reasons"]]
    return lines
