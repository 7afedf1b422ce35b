"""Literal Chrome traces in, rows per plane out, for the tests of the kineto reader."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from planewise.ingest.domains import null_where_forbidden
from planewise.ingest.kineto import KinetoReader
from planewise.recorder.planes import PLANES

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
Planes = dict[str, list[dict[str, Any]]]


def x(cat: str | None, name: str, ts: Any, dur: Any, *, pid: Any = 1, tid: Any = 1, **args: Any) -> dict[str, Any]:
    """A complete event; argument names with underscores for spaces are written as the profiler does."""
    event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur}
    return {key: value for key, value in event.items() if value is not None} | {
        "args": {key.replace("_", " "): value for key, value in args.items()}
    }


def text_of(events: list[Any], **keys: Any) -> str:
    """A trace file: every event on lines of its own; a string stands for itself, damage included."""
    body = ",\n  ".join(event if isinstance(event, str) else json.dumps(event) for event in events)
    head = json.dumps({"schemaVersion": 1, **keys})[:-1]
    return f'{head},\n  "traceEvents": [\n  {body}\n  ]\n}}\n'


def read_text(folder: Path, text: str | bytes, **options: Any) -> Planes:
    """The planes of a file of this content."""
    path = folder / "trace.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_file(path, **options)


def read_events(folder: Path, *events: Any, **keys: Any) -> Planes:
    """The planes of a trace of these events."""
    return read_text(folder, text_of(list(events), **keys))


def read_file(path: Path, **options: Any) -> Planes:
    """Every row of a trace, by plane; the run as ``runs``."""
    return {name: table.to_pylist() for name, table in read_tables(path, **options).items()}


def read_tables(path: Path, **options: Any) -> dict[str, pa.Table]:
    """Every plane of a trace as one table."""
    found = defaultdict(list)
    for batch in KinetoReader(**options).read(path):
        found[batch.plane].append(batch.table)
    return defaultdict(lambda: pa.table({}), {name: pa.concat_tables(tables) for name, tables in found.items()})


def check_plane(name: str, table: pa.Table) -> None:
    """What every reader promises of its rows: the plane's schema, no NULL where it forbids one, order by seq."""
    schema = PLANES[name].schema
    assert table.schema.equals(schema)
    assert [null_where_forbidden(table.column(field.name), field) for field in schema] == [None] * len(schema)
    seq = table.column("seq").to_pylist()
    assert seq == sorted(seq)


def fates(planes: Planes) -> dict[tuple[str, str, str | None], int]:
    """Records by kind, fate and reason."""
    return {(row["kind"], row["fate"], row["reason"]): row["records"] for row in planes["ingest_counts"]}


def records(planes: Planes) -> int:
    """Records of the source by its ledger; kinds with an arrow count further rows of the same records."""
    return sum(row["records"] for row in planes["ingest_counts"] if " -> " not in row["kind"])


def rows_by_ledger(planes: Planes) -> Counter[str]:
    """Rows that every plane should have by the ledger."""
    found: Counter[str] = Counter()
    for row in planes["ingest_counts"]:
        if row["plane"]:
            found[row["plane"]] += row["records"]
    return found


def codes(planes: Planes) -> list[tuple[str, str]]:
    """Code and severity of every issue."""
    return [(row["code"], row["severity"]) for row in planes.get("ingest_issues", [])]


def corpus_bytes(path: Path) -> bytes:
    """A corpus file decompressed."""
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
