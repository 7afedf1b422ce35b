"""Rows of a timeline, laid out in lanes so that nothing in a lane overlaps, as a page embeds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..output import printable

MOST_ROWS = 100_000
"""Rows that a page holds; of more the longest are shown, and the page says so."""
MOST_LANES = 200
"""Lanes that a page draws; what lies deeper is counted."""
NAME_CHARACTERS = 200


@dataclass
class Timeline:
    """One axis with its lanes. Times are whole nanoseconds from ``start_ns``; rows of a lane are in order of time.

    ``marks[i]`` says which of ``legend`` row i is; ``total`` counts what was recorded, with what is not displayed.
    """

    title: str
    start_ns: int
    end_ns: int
    total: int
    legend: list[str]
    lane_names: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    lanes: list[dict[str, list[int]]] = field(default_factory=list)
    too_deep: int = 0
    open_rows: int = 0

    @property
    def displayed(self) -> int:
        """Rows that are drawn."""
        return sum(len(lane["s"]) for lane in self.lanes)

    def embedded(self) -> dict[str, Any]:
        """What the page's script draws."""
        span = max(self.end_ns - self.start_ns, 1)
        parts = {"names": self.names, "lanes": self.lanes, "legend": self.legend, "rows": self.lane_names}
        return {"span": span, **parts}


@dataclass(frozen=True)
class Row:
    """One row to lay out; ``lane`` is the key of its lane (None: found by nesting), ``mark`` a place in the legend."""

    name: str
    start_ns: int
    duration_ns: int
    mark: int = 0
    lane: str | None = None


def shortened(text: str, limit: int = NAME_CHARACTERS) -> str:
    """Text on one line; a longer one is cut in the middle and says how long it is."""
    shown = printable(text[: limit + 1])
    if len(text) <= limit and len(shown) <= 2 * limit:
        return shown
    half = limit // 2
    return f"{printable(text[:half])} … {printable(text[-half:])} ({len(text):,} characters)"


def timeline(title: str, rows: Sequence[Row], legend: list[str], *, total: int, open_rows: int = 0) -> Timeline | None:
    """Lay out rows on one axis; None for none. Rows with a ``lane`` stay in it, with overlapping ones below."""
    if not rows:
        return None
    start = min(row.start_ns for row in rows)
    end = max(row.start_ns + row.duration_ns for row in rows)
    found = Timeline(title, start, end, total, legend, open_rows=open_rows)
    places: dict[str, int] = {}
    groups: dict[str | None, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.start_ns, -row.duration_ns)):
        groups.setdefault(row.lane, []).append(row)
    for lane, members in sorted(groups.items(), key=lambda item: item[0] or ""):
        _lay_out(found, lane, members, places)
    found.names = [shortened(name) for name in places]
    return found


def _lay_out(found: Timeline, lane: str | None, rows: Iterable[Row], places: dict[str, int]) -> None:
    """Each row goes below the deepest one that still runs, so what encloses a row stands above it."""
    ends: list[int] = []
    first = len(found.lanes)
    for row in rows:
        while ends and ends[-1] <= row.start_ns:
            ends.pop()
        ends.append(row.start_ns + row.duration_ns)
        place = first + len(ends) - 1
        if place >= MOST_LANES:
            found.too_deep += 1
            continue
        if place == len(found.lanes):
            found.lanes.append({"s": [], "d": [], "n": [], "m": []})
            found.lane_names.append(lane if lane is not None and len(ends) == 1 else "")
        own = found.lanes[place]
        own["s"].append(row.start_ns - found.start_ns)
        own["d"].append(row.duration_ns)
        own["n"].append(places.setdefault(row.name, len(places)))
        own["m"].append(row.mark)
