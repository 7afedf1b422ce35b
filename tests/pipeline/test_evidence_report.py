"""The Markdown report of one packet (protocol 7.7)."""

from __future__ import annotations

from typing import Any

import pytest
from plane_store import example, span

from planewise.pipeline.evidence import build_packets
from planewise.pipeline.report import render_report
from support import TinyStore, emptied


def report(store: TinyStore) -> list[str]:
    [(_, packet)] = build_packets(store.con)
    return render_report(packet).splitlines()


def run(**values: Any) -> TinyStore:
    store = emptied().run(**values)
    span(store, "m", None, 0, 100, measured=True, end_seq=10**6, name=values.get("entrypoint", "m"))
    return store


def test_the_report_of_the_worked_example_has_its_sections() -> None:
    lines = report(example())
    assert lines[:7] == [
        "# planewise evidence",
        "",
        "- Status: **COMPLETE CAPTURE**",
        "- Entrypoint: demo::train",
        "- Run: run-every-kind",
        "- Phase: train",
        "- Device: cuda:0",
    ]
    assert [line for line in lines if line.startswith("## ")] == [
        "## Capability matrix",
        "## Qualified findings",
        "## Evidence gaps",
    ]
    assert sum(line.startswith("| ") for line in lines) == 2 + 11
    assert "| GPU correlation | unavailable | none | no Nsight directory was given |" in lines


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({}, "COMPLETE CAPTURE"),
        ({"outcome": "failed", "failure_reason": "boom"}, "FAILED CAPTURE"),
        ({"outcome": None}, "STRUCTURALLY INVALID"),
    ],
)
def test_the_status_puts_validity_before_the_outcome(values: dict[str, Any], status: str) -> None:
    assert report(run(**values))[2] == f"- Status: **{status}**"


def test_a_run_without_findings_says_so() -> None:
    assert "The evidence qualifies no finding." in report(run(outcome="failed", failure_reason="boom"))


def test_names_stay_on_their_line_and_in_their_cell() -> None:
    name = "a|b\n# c\r\x1b[1m`<i>\u2028\u202e"
    lines = report(run(entrypoint=name, schema="x|y"))
    shown = "a\\|b\\n# c\\r\\x1b\\[1m\\`\\<i\\>\\u2028\\u202e"
    assert lines[3] == f"- Entrypoint: {shown}"
    assert any(line.startswith(f"- complete: {shown} has the largest") for line in lines)
    assert "| Structural trace | complete | x\\|y validation | no structural rule is broken |" in lines


def test_a_failure_reason_is_a_gap() -> None:
    lines = report(run(outcome="failed", failure_reason="the disk|is full"))
    gaps = lines[lines.index("## Evidence gaps") :]
    assert any("the disk\\|is full" in line for line in gaps)


def test_what_a_foreign_trace_does_not_say_is_not_recorded() -> None:
    lines = report(run(source_format="kineto", phase=None, device=None))
    assert lines[5:7] == ["- Phase: not recorded", "- Device: not recorded"]
