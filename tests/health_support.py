"""Helpers of the health tests: one set of rows judged in a complete, a failed and an interrupted capture."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from support import TinyStore

Add = Callable[..., TinyStore]
OUTCOMES = ("complete", "failed", "interrupted")


def tree(add: Add) -> None:
    """A root s1 [0, 100] and its measured child s2 [10, 90]: no rule about spans is broken."""
    add("spans", {"id": "s1", "start_ns": 0, "duration_ns": 100, "end_seq": 0})
    add("spans", {"id": "s2", "parent_id": "s1", "start_ns": 10, "duration_ns": 80, "measured": True, "end_seq": 0})


def judged(
    store: TinyStore, code: str, *build: Callable[[Add], object], contract: dict[str, Any] | None = None, **run: Any
) -> list[list[tuple[str, str | None]]]:
    """(severity, subject) of the issues with ``code``, for a capture of each outcome in the order of OUTCOMES."""
    for outcome in OUTCOMES:
        ended = None if outcome == "interrupted" else outcome
        reason = "boom" if outcome == "failed" else None
        store.run(outcome, outcome=ended, failure_reason=reason, contract=contract, **run)
        for step in build:
            step(partial(store.add, run_id=outcome))
    query = f"SELECT run_id, severity, subject FROM health_issues WHERE code = '{code}' ORDER BY ALL"
    rows = store.rows(query)
    return [[row[1:] for row in rows if row[0] == outcome] for outcome in OUTCOMES]


def errors(*subjects: str | None) -> list[list[tuple[str, str | None]]]:
    """What ``judged`` gives for a code that is an error whatever the outcome."""
    return [[("error", subject) for subject in subjects]] * 3


def softened(*subjects: str | None) -> list[list[tuple[str, str | None]]]:
    """What ``judged`` gives for a code that is an error in a complete capture and a warning in any other."""
    warnings = [("warning", subject) for subject in subjects]
    return [[("error", subject) for subject in subjects], warnings, warnings]


def warnings(*subjects: str | None) -> list[list[tuple[str, str | None]]]:
    """What ``judged`` gives for a code that is a warning whatever the outcome."""
    return [[("warning", subject) for subject in subjects]] * 3


NONE: list[list[tuple[str, str | None]]] = [[], [], []]
"""What ``judged`` gives when the rule holds."""
