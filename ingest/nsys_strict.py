"""Whether a report of an artifact folder parses by protocol 12.2; one that does not is skipped as a whole."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

REPORTS = ("cuda_gpu_kern_sum", "cuda_api_sum", "cuda_gpu_mem_time_sum", "nvtx_gpu_proj_trace", "cuda_gpu_trace")
"""The five reports of a folder, in the order in which the name of a file is searched for them."""

_NAME = ("name", "operation", "range", "kernel_name")
_START, _DURATION = ("start_ns", "start"), ("duration_ns", "duration", "dur_ns")
_SUMMED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "total": ("total_time_ns", "total_ns"),
        "count": ("instances", "num_calls", "operations", "count"),
        "average": ("avg_ns", "average_ns"),
        "minimum": ("min_ns", "minimum_ns"),
        "maximum": ("max_ns", "maximum_ns"),
    }
)
_OPERATIONS = {"operations": ("num_gpu_ops", "numgpuops", "gpu_operations")}
_TIMED: Mapping[str, tuple[str, ...]] = MappingProxyType({"start": _START, "duration": _DURATION, **_OPERATIONS})
_PROJECTED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "start": ("orig_start_ns", "orig_start", *_START),
        "duration": ("orig_duration_ns", "orig_duration", *_DURATION),
        "projected start": ("projected_start_ns", "projected_start", "proj_start_ns"),
        "projected duration": ("projected_duration_ns", "projected_duration", "proj_dur_ns"),
        **_OPERATIONS,
    }
)
_DROPPED = str.maketrans({"(": None, ")": None, "%": None, " ": "_", "-": "_", "/": "_"})
_UNSIGNED = re.compile(r"\+?[0-9]{1,20}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_MISSING = "the header has no column for its {}, expected one of {}"


class NotParsed(Exception):
    """The report breaks the protocol; the text says how and in which line."""


def report_of(name: str) -> str | None:
    """The report that a file of a folder holds by its name; None for a file that is no report."""
    return next((report for report in REPORTS if report in name), None) if name.endswith(".csv") else None


def failure(path: Path, report: str) -> tuple[str | None, int]:
    """Why a report does not parse, None when it does, and how many lines it has below its header.

    Raises ``OSError``.
    """
    rows = 0
    why = None
    try:
        for cells, line, check in _lines(path, report):
            rows += 1
            if why is None and (found := check(cells)):
                why = f"line {line}: {found}"
    except (NotParsed, csv.Error, UnicodeDecodeError) as error:
        why = why or str(error)
    return why, rows


def _lines(path: Path, report: str) -> Iterator[tuple[list[str], int, Callable[[Sequence[str]], str | None]]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream)
        header = next((row for row in rows if row), None)
        if header is None:
            raise NotParsed("the file is empty, expected a header")
        check = _checker(header, report)
        for cells in rows:
            if cells:
                yield cells, rows.line_num, check


def _checker(header: Sequence[str], report: str) -> Callable[[Sequence[str]], str | None]:
    names = [normal(cell) for cell in header]
    summed = report.endswith("_sum")
    numbers = _SUMMED if summed else _PROJECTED if report == "nvtx_gpu_proj_trace" else _TIMED
    needed = ("total",) if summed else tuple(name for name in numbers if name != "operations")
    name_at = _place(names, _NAME)
    if name_at is None:
        raise NotParsed(_MISSING.format("name", ", ".join(_NAME)))
    places = {number: _place(names, aliases) for number, aliases in numbers.items()}
    for number in needed:
        if places[number] is None:
            raise NotParsed(_MISSING.format(number, ", ".join(numbers[number])))
    positive = tuple(number for number in needed if "duration" in number)

    def check(cells: Sequence[str]) -> str | None:
        if name_at >= len(cells) or not cells[name_at].strip():
            return None
        for number, place in places.items():
            text = cells[place].strip().replace(",", "") if place is not None and place < len(cells) else ""
            if not text and number in needed:
                return f"its {number} is blank"
            if text and not is_number(text):
                return f"its {number} is {text[:40]!r}, expected a number of 0 or more"
            if number in positive and float(text) < 1:
                return f"its {number} is {text[:40]}, expected more than 0"
        return None

    return check


def normal(cell: str) -> str:
    """A header's cell in normal form."""
    return cell.strip().lower().translate(_DROPPED).strip("_")


def is_number(text: str) -> bool:
    """An unsigned integer, or a finite float that is not negative, minus zero included, and below 2^64."""
    if _UNSIGNED.fullmatch(text):
        return int(text) < 2**64
    if not _FLOAT.fullmatch(text):
        return False
    value = float(text)
    return math.isfinite(value) and math.copysign(1, value) > 0 and value < 2**64


def _place(names: Sequence[str], aliases: Sequence[str]) -> int | None:
    return next((names.index(alias) for alias in aliases if alias in names), None)
