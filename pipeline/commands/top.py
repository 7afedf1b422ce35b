"""``planewise top``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from ..inputs import open_input
from ..output import OutputFormat, Rows, write_rows
from .options import format_option, input_argument, note

NAME_WIDTH = 32


@dataclass(frozen=True)
class Ranking:
    """One ranking: what it counts, the query (a limit follows), and its columns; ``units`` scale columns for people."""

    doc: str
    query: str
    columns: tuple[str, ...]
    units: Mapping[str, tuple[float, str]]


_MS, _MIB = (1e6, "ms"), (2**20, "MiB")
RANKINGS: Mapping[str, Ranking] = MappingProxyType(
    {
        "host": Ranking(
            "host self time in the measured region",
            "SELECT name, measured_overlap_self_time_ns, full_duration_ns, scope FROM slowest_host ORDER BY rank, id",
            ("name", "host_self_time_ns", "duration_ns", "scope"),
            MappingProxyType({"host_self_time_ns": _MS, "duration_ns": _MS}),
        ),
        "device": Ranking(
            "device time of kernels, by name; a name's share is that of its clock",
            "SELECT name, device, calls, busy_ns, share FROM kernel_summary"
            " ORDER BY busy_ns DESC, device, clock_id, rank",
            ("name", "device", "calls", "busy_ns", "share"),
            MappingProxyType({"busy_ns": _MS}),
        ),
        "memory": Ranking(
            "peak of the live bytes below a span",
            "SELECT name, peak_live_bytes, allocated_bytes FROM heaviest ORDER BY rank, id",
            ("name", "peak_live_bytes", "allocated_bytes"),
            MappingProxyType({"peak_live_bytes": _MIB, "allocated_bytes": _MIB}),
        ),
        "activations": Ranking(
            "observed host time of activation operations",
            "SELECT name, observed_host_duration_ns, dense_output_bytes, logical_allocated_bytes"
            " FROM activation_hotspots ORDER BY host_rank NULLS LAST, id",
            ("name", "observed_host_duration_ns", "dense_output_bytes", "logical_allocated_bytes"),
            MappingProxyType(
                {"observed_host_duration_ns": _MS, "dense_output_bytes": _MIB, "logical_allocated_bytes": _MIB}
            ),
        ),
    }
)
"""Every ranking by its name; they are never merged."""


@click.command()
@input_argument
@click.option(
    "--by",
    "ranking",
    type=click.Choice(list(RANKINGS)),
    default="host",
    show_default=True,
    help="; ".join(f"{name}: {one.doc}" for name, one in RANKINGS.items()) + ".",
)
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Rows to show.")
@format_option()
def top(input_path: Path, ranking: str, limit: int, output_format: OutputFormat) -> int:
    """What costs most in one run, by one measure.

    INPUT is a bundle, a capture or a trace. The table gives times in ms and sizes in MiB and shortens names in the
    middle; the other formats give whole nanoseconds, bytes and names.

    \b
    Example: planewise top store/bundles/RUN --by activations --limit 5
    """
    chosen = RANKINGS[ranking]
    with open_input(input_path) as opened:
        [(total,)] = opened.con.execute(f"SELECT count(*) FROM ({chosen.query})").fetchall()
        rows = opened.con.execute(f"{chosen.query} LIMIT {limit}").fetchall()
    if output_format is OutputFormat.TABLE:
        write_rows(Rows(_titles(chosen), [_told(chosen, row) for row in rows]), output_format)
    else:
        write_rows(Rows(chosen.columns, rows), output_format)
    note(f"{len(rows)} of {total} rows by {chosen.doc}" if total else f"nothing to rank by {chosen.doc}")
    return 0


def _titles(chosen: Ranking) -> tuple[str, ...]:
    return tuple(_title(name, chosen.units.get(name)) for name in chosen.columns)


def _title(name: str, unit: tuple[float, str] | None) -> str:
    short = {
        "host_self_time_ns": "self",
        "duration_ns": "whole",
        "observed_host_duration_ns": "host",
        "dense_output_bytes": "dense",
        "logical_allocated_bytes": "allocated",
    }
    plain = short.get(name, name.removesuffix("_ns").removesuffix("_bytes").replace("_", " "))
    return plain if unit is None else f"{plain}, {unit[1]}"


def _told(chosen: Ranking, row: tuple[Any, ...]) -> list[Any]:
    return [_value(name, value, chosen.units.get(name)) for name, value in zip(chosen.columns, row, strict=True)]


def _value(name: str, value: Any, unit: tuple[float, str] | None) -> Any:
    if value is None:
        return None
    if unit is not None:
        return f"{value / unit[0]:,.3f}"
    if name == "share":
        return f"{value:.1%}"
    return shortened(str(value)) if name == "name" else str(value).replace("_", " ") if name == "scope" else value


def shortened(name: str, width: int = NAME_WIDTH) -> str:
    """A name of at most so many characters, cut in the middle: both ends tell most."""
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[-end:]}"
