"""Comparisons as a table of GitHub-flavoured Markdown, for the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..recorder.errors import InputRefused
from .output import printable

_WORDS = {
    "candidate_faster": "faster",
    "candidate_slower": "**slower**",
    "no_relevant_change": "no relevant change",
    "inconclusive": "open",
    "ineligible": "not eligible",
}


_LABEL_WORDS = {"candidate_lower": "less", "candidate_higher": "**more**", **_WORDS}
_SHOWN_LABELS = 50


def append_summary(path: Path, title: str, comparisons: Iterable[dict[str, Any]], notes: Iterable[str] = ()) -> None:
    """Append a section to a file, which is made when it is not there. Raises :class:`InputRefused` when it cannot."""
    text = "\n".join(
        [f"## {_cell(title)}", "", *markdown(comparisons), *(f"- {_cell(note)}" for note in notes), "", ""]
    )
    _append(path, text)


def append_family(path: Path, title: str, document: dict[str, Any]) -> None:
    """Append a comparison by label likewise: what changed, most surprising first, and how many did not."""
    told = [row for row in document["rows"] if row["verdict"] in ("candidate_lower", "candidate_higher")]
    unit, rest = document["unit"], len(document["rows"]) - len(told)
    lines = [f"## {_cell(title)}: {_cell(document['metric'])}", ""]
    if told:
        lines += [f"| label | verdict | baseline | candidate | shift ({unit}) | 95 % interval |", "| --- " * 6 + "|"]
    for row in told[:_SHOWN_LABELS]:
        numbers = [f"{row[name]:.6g}" for name in ("baseline_median", "candidate_median", "shift")]
        cells = (
            _cell(row["label"]),
            _LABEL_WORDS[row["verdict"]],
            *numbers,
            f"{row['lower']:.6g} to {row['upper']:.6g}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"- {max(len(told) - _SHOWN_LABELS, 0)} more changed; {rest} labels without a proven change"]
    lines += [f"- `{note['code']}` {_cell(note['message'])}" for note in (*document["reasons"], *document["findings"])]
    _append(path, "\n".join([*lines, "", ""]))


def _append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise InputRefused(f"cannot be written: {error.strerror}", source=path, code="not_writable") from None


def markdown(comparisons: Iterable[dict[str, Any]]) -> list[str]:
    """The lines of a table, then reasons and findings as a list."""
    lines = ["| comparison | verdict | baseline | candidate | change | 95 % interval |", "| --- " * 6 + "|"]
    remarks = []
    for document in comparisons:
        name = document.get("name") or " / ".join(
            str(document[f"{cohort}_implementation_id"] or cohort) for cohort in ("baseline", "candidate")
        )
        lines.append(_row(name, document))
        for remark in (*document["reasons"], *document["findings"]):
            remarks.append(f"- {_cell(name)}: `{remark['code']}` {_cell(remark['message'])}")
    return [*lines, "", *remarks]


def _row(name: str, document: dict[str, Any]) -> str:
    medians = [document[cohort]["median_ns"] for cohort in ("baseline", "candidate")]
    percent, interval = document["median_delta_percent"], document["interval"]
    verdict = _WORDS[document["verdict"]]
    if document["runs_needed"]:
        verdict += f" ({document['runs_needed']} runs a cohort would settle it)"
    cells = (
        _cell(name),
        verdict,
        *(_ms(median) for median in medians),
        "-" if percent is None else f"{percent:+.1f} %",
        "-" if interval is None else f"{_ms(interval['lower_delta_ns'])} to {_ms(interval['upper_delta_ns'])}",
    )
    return f"| {' | '.join(cells)} |"


def _ms(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else f"{nanoseconds / 1e6:.3f} ms"


def _cell(text: str) -> str:
    """Text that neither ends a cell nor becomes markup of its own."""
    for character in "\\`*_[]<>|":
        text = text.replace(character, f"\\{character}")
    return " ".join(printable(text).split())
