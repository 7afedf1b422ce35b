"""A comparison by label as ``planewise compare --metric`` writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...recorder.errors import CheckFailed
from ..multiple import HIGHER, LOWER
from ..output import OutputFormat, Rows, printable, write_document, write_rows
from .options import note

FAMILY_COLUMNS = (
    *("label", "verdict", "baseline_median", "candidate_median", "shift", "lower", "upper"),
    *("p", "p_holm", "p_bh", "p_joint", "baseline_runs", "candidate_runs"),
)


def write_family(document: dict[str, Any], output_format: OutputFormat, output: Path | None) -> None:
    """Write a comparison by label, and say beside it how many changed and what speaks against it."""
    if output is not None or output_format is OutputFormat.JSON:
        write_document(document, output)
    elif output_format is OutputFormat.TABLE:
        write_rows(Rows(_TOLD, [_told(row, document) for row in document["rows"]]), output_format)
    else:
        write_rows(Rows.of(document["rows"], FAMILY_COLUMNS), output_format)
    changed = sum(row["verdict"] in (LOWER, HIGHER) for row in document["rows"])
    note(f"{document['questions']} labels, {changed} changed (p adjusted: {document['adjust']})")
    for finding in document["findings"]:
        note(f"{finding['code']}: {finding['message']}")
    drifting = sum(row["drifts"] for row in document["rows"])
    if drifting:
        note(f"drift_not_separable: {drifting} labels drift with the machine and stay open")


_TOLD = ("label", "verdict", "baseline", "candidate", "shift", "95% interval", "p")
_SCALES = {"ns": (1e6, "ms"), "bytes": (2**20, "MiB")}


def _told(row: dict[str, Any], document: dict[str, Any]) -> tuple[str, ...]:
    """One label for people: in ms or MiB, and the p that decides."""
    scale, unit = _SCALES.get(document["unit"], (1, ""))

    def number(name: str) -> str:
        return "-" if row[name] is None else f"{row[name] / scale:.4g}"

    interval = "-" if row["lower"] is None else f"{number('lower')} to {number('upper')}"
    p = row[f"p_{document['adjust']}"]
    medians = [f"{number(name)} {unit}".strip() for name in ("baseline_median", "candidate_median")]
    verdict = row["verdict"].removeprefix("candidate_")
    return (row["label"], verdict, *medians, number("shift"), interval, "-" if p is None else f"{p:.2g}")


def check_family(document: dict[str, Any], *, require_eligible: bool, fail_on: str | None) -> None:
    """Raise :class:`CheckFailed` for what the caller asked to be failed on."""
    reasons = sorted({reason["code"] for reason in document["reasons"]})
    if reasons:
        note(f"not eligible: {', '.join(reasons)}")
    higher = [row["label"] for row in document["rows"] if row["verdict"] == HIGHER]
    if fail_on and higher:
        names = ", ".join(printable(label) for label in higher[:3]) + (" and others" if len(higher) > 3 else "")
        raise CheckFailed(f"{len(higher)} labels take more: {names}", remedy="the intervals say how much")
    if require_eligible and reasons:
        raise CheckFailed(f"the comparison is not eligible: {', '.join(reasons)}", remedy="the reasons say why")
