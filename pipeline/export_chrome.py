"""``planewise export perfetto``: a run as Chrome JSON, which ui.perfetto.dev and chrome://tracing open.

Clocks are never put on one axis that they do not share: each begins at its own first event, and each device clock is a
group of tracks of its own. Slices of one track nest; work that would cross another lies on a track beside.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import duckdb

from .. import __version__
from .fsio import temporary_sibling

_BATCH = 8192
_HOST = """
    SELECT * FROM (
        SELECT 'span' AS kind, name, start_ns, duration_ns, process_id, thread_id, id, NULL AS link, seq FROM spans
        UNION ALL
        SELECT 'op', op_name, timestamp_ns, duration_ns, process_id, thread_id, span_id, NULL, seq FROM ops
        UNION ALL
        SELECT 'launch', name, start_ns, duration_ns, process_id, thread_id, NULL, correlation_id, seq FROM launches
    )
    WHERE start_ns IS NOT NULL
    ORDER BY start_ns, duration_ns DESC NULLS FIRST, kind DESC, seq
"""
_DEVICE = """
    SELECT device, clock_id, stream_id, coalesce(name, backend, 'not named'), coalesce(category, 'kernel'),
        start_ns, duration_ns, correlation_id
    FROM device_intervals ORDER BY start_ns, duration_ns DESC, seq
"""
_COUNTERS = """
    SELECT timestamp_ns, map_from_entries(list((category, live_bytes) ORDER BY category))
    FROM live_bytes_by_category GROUP BY timestamp_ns ORDER BY timestamp_ns
"""
_ORIGINS = """
    SELECT clock, min(start_ns) FROM (
        SELECT NULL AS clock, start_ns FROM spans UNION ALL SELECT NULL, timestamp_ns FROM ops
        UNION ALL SELECT NULL, start_ns FROM launches UNION ALL SELECT NULL, timestamp_ns FROM memory_events
        UNION ALL SELECT clock_id, start_ns FROM device_intervals
    ) WHERE start_ns IS NOT NULL GROUP BY clock
"""
_CATEGORIES = {"span": "user_annotation", "op": "cpu_op", "launch": "cuda_runtime"}


@dataclass
class ExportedTimeline:
    """How many of each were written; ``arrows`` join a launch and the work that carries its correlation id."""

    slices: int = 0
    arrows: int = 0
    counters: int = 0
    never_ended: int = 0


@dataclass
class _Tracks:
    """Numbers of processes and threads, given out as they are met, with the ends of what is open on each track."""

    processes: dict[Any, int] = field(default_factory=dict)
    names: list[dict[str, Any]] = field(default_factory=list)
    open: dict[tuple[int, str], list[list[int]]] = field(default_factory=dict)
    threads: dict[tuple[int, str, int], int] = field(default_factory=dict)

    def process(self, key: Any, name: str) -> int:
        if key not in self.processes:
            self.processes[key] = len(self.processes) + 1
            self._named("process_name", self.processes[key], 0, name)
        return self.processes[key]

    def thread(self, pid: int, name: str, start: int, end: int) -> int:
        """The first track of that name where the slice nests or stands alone."""
        tracks = self.open.setdefault((pid, name), [])
        place = next((at for at, ends in enumerate(tracks) if _nests(ends, start, end)), len(tracks))
        if place == len(tracks):
            tracks.append([])
        tracks[place].append(end)
        key = (pid, name, place)
        if key not in self.threads:
            self.threads[key] = len(self.threads) + 1
            self._named("thread_name", pid, self.threads[key], name + (f" ({place + 1})" if place else ""))
        return self.threads[key]

    def _named(self, what: str, pid: int, tid: int, name: str) -> None:
        self.names.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})


def _nests(ends: list[int], start: int, end: int) -> bool:
    """Close what ended before; True when nothing is open, or what is open encloses the slice."""
    while ends and ends[-1] <= start:
        ends.pop()
    return not ends or end <= ends[-1]


def export_chrome(con: duckdb.DuckDBPyConnection, run_id: str, output: Path) -> ExportedTimeline:
    """Write the one run of ``con``; gzipped when the name ends in ``.gz``. Times are exact, in microseconds with three
    decimals. Raises ``OSError``."""
    done = ExportedTimeline()
    [(host_clock,)] = con.execute("SELECT coalesce(host_clock_id, 'host') FROM runs").fetchall()
    origins = {clock or host_clock: start for clock, start in _sorted_origins(con, host_clock)}
    temporary = temporary_sibling(output)
    try:
        with _opened(temporary, packed=output.suffix == ".gz") as stream:
            about = {"tool": f"planewise {__version__}", "run_id": run_id, "clocks": _told(origins)}
            stream.write('{"schemaVersion":1,"displayTimeUnit":"ns","otherData":' + json.dumps(about))
            stream.write(',\n"traceEvents":[\n')
            separator = ""
            for event in _events(con, host_clock, origins, done):
                stream.write(separator + event)
                separator = ",\n"
            stream.write("\n]}\n")
        temporary.replace(output)
    finally:
        temporary.unlink(missing_ok=True)
    return done


def _sorted_origins(con: duckdb.DuckDBPyConnection, host_clock: str) -> list[tuple[str, int]]:
    """The first time of each clock; work on the host's own clock shares its origin."""
    found: dict[str, int] = {}
    for clock, start in con.execute(_ORIGINS).fetchall():
        name = clock or host_clock
        found[name] = min(start, found.get(name, start))
    return sorted(found.items())


def _told(origins: dict[str, int]) -> list[dict[str, Any]]:
    return [{"clock_id": clock, "zero_is_ns": start} for clock, start in origins.items()]


def _opened(path: Path, *, packed: bool) -> IO[str]:
    return gzip.open(path, "wt", encoding="utf-8") if packed else path.open("w", encoding="utf-8")


def _events(
    con: duckdb.DuckDBPyConnection, host_clock: str, origins: dict[str, int], done: ExportedTimeline
) -> Iterator[str]:
    tracks = _Tracks()
    launches: dict[tuple[Any, str], tuple[int, int, str] | None] = {}
    yield from _host(con, host_clock, origins, tracks, launches, done)
    yield from _device(con, origins, tracks, launches, done)
    yield from _counters(con, host_clock, origins, tracks, done)
    yield from map(_json, tracks.names)


def _host(
    con: duckdb.DuckDBPyConnection, host_clock: str, origins: dict[str, int], tracks: _Tracks,
    launches: dict[Any, Any], done: ExportedTimeline,
) -> Iterator[str]:  # fmt: skip
    for kind, name, start, duration, process, thread, id_, link, _ in _fetched(con, _HOST):
        at = start - origins[host_clock]
        pid = tracks.process(("host", process), _host_name(host_clock, process))
        tid = tracks.thread(pid, "host" if thread is None else f"thread {thread}", at, at + (duration or 0))
        head = {"name": name, "cat": _CATEGORIES[kind], "pid": pid, "tid": tid}
        args = {"id": id_} if id_ is not None else {}
        if link is not None:
            args["correlation"] = link
            # An id that several launches have joins none of them.
            launches[link] = None if link in launches else (pid, tid, _us(at))
        if duration is None:
            done.never_ended += 1
            yield _placed({**head, "ph": "i", "s": "t", "args": {**args, "state": "never ended"}}, _us(at))
            continue
        done.slices += 1
        yield _placed({**head, "ph": "X", "args": args}, _us(at), _us(duration))


def _device(
    con: duckdb.DuckDBPyConnection, origins: dict[str, int], tracks: _Tracks, launches: dict[Any, Any],
    done: ExportedTimeline,
) -> Iterator[str]:  # fmt: skip
    for device, clock, stream, name, category, start, duration, link in _fetched(con, _DEVICE):
        at = start - origins[clock]
        pid = tracks.process((device, clock), f"{device} · clock {clock}, from its own zero")
        tid = tracks.thread(pid, "no stream" if stream is None else f"stream {stream}", at, at + duration)
        args = {"device": device, "stream": stream, "correlation": link}
        args = {key: value for key, value in args.items() if value is not None}
        done.slices += 1
        head = {"name": name, "cat": category, "ph": "X", "pid": pid, "tid": tid}
        yield _placed({**head, "args": args}, _us(at), _us(duration))
        if launch := launches.get(link):
            done.arrows += 1
            arrow = {"name": "launch", "cat": "ac2g", "id": done.arrows}
            yield _placed({**arrow, "ph": "s", "pid": launch[0], "tid": launch[1]}, launch[2])
            yield _placed({**arrow, "ph": "f", "bp": "e", "pid": pid, "tid": tid}, _us(at))


def _counters(
    con: duckdb.DuckDBPyConnection, host_clock: str, origins: dict[str, int], tracks: _Tracks, done: ExportedTimeline
) -> Iterator[str]:
    names = [
        name for (name,) in con.execute("SELECT DISTINCT category FROM live_bytes_by_category ORDER BY 1").fetchall()
    ]
    for at, sizes in _fetched(con, _COUNTERS):
        pid = tracks.process(("memory",), f"logical memory · clock {host_clock}")
        done.counters += 1
        values = {name: int(sizes.get(name, 0)) for name in names}
        head = {"name": "live bytes", "ph": "C", "pid": pid, "tid": 0, "args": values}
        yield _placed(head, _us(at - origins[host_clock]))


def _host_name(clock: str, process: int | None) -> str:
    return f"host · clock {clock}" + ("" if process is None else f" · process {process}")


def _placed(event: dict[str, Any], ts: str, dur: str | None = None) -> str:
    """The event with its times, which are text of exact decimals and never a float."""
    times = f'"ts":{ts}' + ("" if dur is None else f',"dur":{dur}')
    return f"{_json(event)[:-1]},{times}}}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"


def _fetched(con: duckdb.DuckDBPyConnection, query: str) -> Iterator[Any]:
    cursor = con.cursor()
    cursor.execute(query)
    while rows := cursor.fetchmany(_BATCH):
        yield from rows
    cursor.close()
