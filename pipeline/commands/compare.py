"""``planewise compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...recorder.errors import CheckFailed, UsageError
from ..bundle import refuse_output_inside_bundle
from ..compare import compare_bundles
from ..output import OutputFormat, Rows, write_document, write_rows
from ..store import Store
from ..untrusted import lock_down, members_where
from .options import StorePath, format_option, note, output_option


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
@click.option("--require-eligible", is_flag=True, help="Exit with 1 when the runs do not qualify for a comparison.")
@format_option()
@output_option
def compare(
    baseline: tuple[Path, ...],
    candidate: tuple[Path, ...],
    baseline_where: str | None,
    candidate_where: str | None,
    store_path: Path | None,
    require_eligible: bool,
    output_format: OutputFormat,
    output: Path | None,
) -> int:
    """Is the candidate faster than the baseline? Outer wall time of two cohorts of verified bundles.

    The verdict is ineligible unless every rule holds: five runs a cohort, valid and complete captures, one identity,
    production-equivalent scope, synchronised devices. Each rule that does not hold is listed by its code.

    \b
    Examples:
      planewise compare --baseline a/1 --baseline a/2 ... --candidate b/1 ...
      planewise compare --store S --baseline-where "comparison_identity.implementation_id = 'git:1'" \\
          --candidate-where "comparison_identity.implementation_id = 'git:2'"
    """
    cohorts = [
        _cohort("baseline", baseline, baseline_where, store_path),
        _cohort("candidate", candidate, candidate_where, store_path),
    ]
    if output is not None:
        for bundle in (*cohorts[0], *cohorts[1]):
            refuse_output_inside_bundle(output, bundle)
    document = compare_bundles(*cohorts)
    if output is not None or output_format is OutputFormat.JSON:
        write_document(document, output)
    else:
        write_rows(Rows(("name", "value"), _lines(document)), output_format)
    codes = sorted({reason["code"] for reason in document["reasons"]})
    note(f"verdict: {document['verdict']}" + (f" ({', '.join(codes)})" if codes else ""))
    if require_eligible and document["verdict"] == "ineligible":
        raise CheckFailed(
            f"the comparison is not eligible: {', '.join(codes)}", remedy="the reasons say what to record"
        )
    return 0


def _cohort(name: str, bundles: tuple[Path, ...], where: str | None, store_path: Path | None) -> list[Path]:
    if bool(bundles) == (where is not None):
        raise UsageError(f"give either --{name} bundles or --{name}-where", remedy="see planewise compare --help")
    if where is None:
        return list(bundles)
    if store_path is None:
        raise UsageError(f"--{name}-where needs --store", remedy="name the store whose runs it selects")
    store = Store.open(store_path)
    con = store.connect()
    try:
        lock_down(con, [store.path])
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
    interval = document["confidence_interval"]
    lines.append(
        ("95% interval of the difference", interval and [interval["lower_delta_ns"], interval["upper_delta_ns"]])
    )
    lines += [(f"reason {reason['code']}", reason["message"]) for reason in document["reasons"]]
    return lines
