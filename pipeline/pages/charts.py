"""Charts as inline SVG: Vega-Lite specifications, drawn by vl-convert without a network."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from .lanes import shortened

INK, LINE = "#010203", "#010204"
SERIES = ("#010211", "#010212", "#010213", "#010214", "#010215", "#010216", "#010217")
"""Colours that stand for those of the page's style, which follow light and dark."""

_VARIABLES = {INK: "ink", LINE: "line"} | {colour: f"c{at}" for at, colour in enumerate(SERIES, 1)}
_CONFIG = {
    "background": "transparent",
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": INK, "domainColor": LINE, "tickColor": LINE, "gridColor": LINE,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 220,
    },
    "legend": {"labelColor": INK, "titleColor": INK, "labelFontSize": 11, "orient": "bottom", "title": None},
}  # fmt: skip


def drawn(spec: dict[str, Any], label: str) -> str:
    """The SVG of a Vega-Lite specification, with the page's colours and ``label`` for who does not see it."""
    full = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": _CONFIG, **spec}
    svg = str(_converter().vegalite_to_svg(full))
    svg = re.sub(r"#0102\d\d", lambda match: f"var(--{_VARIABLES[match[0]]})", svg)
    svg = re.sub(r' (?:style|aria-\w+|role|tabindex)="[^"]*"', "", svg)
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    head = f'<svg role="img" aria-label="{_attribute(label)}" preserveAspectRatio="xMinYMin meet"'
    if size:
        svg = svg.replace(size[0], f'width="{size[1]}"', 1)
    return svg.replace("<svg", head, 1)


def named(text: str) -> str:
    """A name as a chart shows it: on one line, and short. Vega's expressions fail on line separators."""
    return shortened(text, 40)


@lru_cache(maxsize=1)
def _converter() -> Any:
    import vl_convert  # Starts a JavaScript engine, which takes most of a second.

    return vl_convert


def _attribute(text: str) -> str:
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, entity)
    return text


def live_bytes(points: list[dict[str, Any]], categories: list[str], peak_ms: float, peak_mib: float) -> str:
    """Live bytes over time, stacked by category, with the peak. ``points``: ms, MiB and category."""
    colours = [SERIES[at % len(SERIES)] for at in range(len(categories))]
    area = {
        "data": {"values": points},
        "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.85},
        "encoding": {
            "x": {"field": "ms", "type": "quantitative", "title": "ms of the host clock since the first event"},
            "y": {"field": "MiB", "type": "quantitative", "title": "live MiB", "stack": "zero"},
            "color": {
                "field": "category", "type": "nominal", "sort": categories,
                "scale": {"domain": categories, "range": colours},
            },
            "order": {"field": "rank", "type": "quantitative"},
        },
    }  # fmt: skip
    peak = {
        "data": {"values": [{"ms": peak_ms, "MiB": peak_mib, "text": f"peak {peak_mib:.3g} MiB"}]},
        "layer": [
            {"mark": {"type": "rule", "color": INK, "strokeDash": [4, 3]}, "encoding": _x()},
            {
                "mark": {"type": "text", "align": "left", "dx": 5, "dy": -5, "color": INK, "fontSize": 11},
                "encoding": {**_x(), "y": {"field": "MiB", "type": "quantitative"}, "text": {"field": "text"}},
            },
        ],
    }
    label = f"Live bytes over time by category; the peak is {peak_mib:.3g} MiB at {peak_ms:.3f} ms."
    return drawn({"width": 860, "height": 220, "layer": [area, peak]}, label)


def _x() -> dict[str, Any]:
    return {"x": {"field": "ms", "type": "quantitative"}}


def samples(rows: list[dict[str, Any]], label: str) -> str:
    """Every sample of two cohorts as a point, with the median of each. ``rows``: cohort, ms, run."""
    values = {"field": "ms", "type": "quantitative", "title": "outer wall time, ms", "scale": {"zero": False}}
    cohort = {"field": "cohort", "type": "nominal", "title": None, "sort": ["baseline", "candidate"]}
    colour = {"field": "cohort", "type": "nominal", "legend": None,
              "scale": {"domain": ["baseline", "candidate"], "range": list(SERIES[:2])}}  # fmt: skip
    points = {
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 0.65},
        "encoding": {"x": values, "y": cohort, "color": colour},
    }
    median = {
        "mark": {"type": "tick", "thickness": 2, "size": 26, "color": INK},
        "encoding": {"x": {**values, "aggregate": "median"}, "y": cohort},
    }
    return drawn({"width": 560, "height": 84, "data": {"values": rows}, "layer": [points, median]}, label)


def interval(lower: float, estimate: float, upper: float, label: str) -> str:
    """The interval of a difference in ms against 0."""
    row = {"lower": lower, "estimate": estimate, "upper": upper, "zero": 0}
    x = {"type": "quantitative", "title": "candidate - baseline, ms"}
    layers = [
        {"mark": {"type": "rule", "strokeDash": [4, 3], "color": LINE, "strokeWidth": 2},
         "encoding": {"x": {"field": "zero", **x}}},
        {"mark": {"type": "bar", "height": 10, "color": SERIES[2], "opacity": 0.8},
         "encoding": {"x": {"field": "lower", **x}, "x2": {"field": "upper"}}},
        {"mark": {"type": "tick", "thickness": 2, "size": 22, "color": INK},
         "encoding": {"x": {"field": "estimate", **x}}},
    ]  # fmt: skip
    return drawn({"width": 560, "height": 40, "data": {"values": [row]}, "layer": layers}, label)


def over_time(rows: list[dict[str, Any]], implementations: list[str], label: str) -> str:
    """Outer wall time of each run over its capture time, by implementation. ``rows``: time, ms, implementation."""
    colours = [SERIES[at % len(SERIES)] for at in range(len(implementations))]
    return drawn(
        {
            "width": 860, "height": 220, "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 0.75},
            "encoding": {
                "x": {"field": "time", "type": "temporal", "title": "captured at (UTC)", "scale": {"type": "utc"}},
                "y": {"field": "ms", "type": "quantitative", "title": "outer wall time, ms", "scale": {"zero": False}},
                "color": {
                    "field": "implementation", "type": "nominal", "sort": implementations,
                    "scale": {"domain": implementations, "range": colours},
                },
                "shape": {
                    "field": "implementation", "type": "nominal", "sort": implementations,
                    "scale": {"domain": implementations},
                },
            },
        },
        label,
    )  # fmt: skip
