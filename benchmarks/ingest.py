"""What strict ingest of a trace costs, as ratios against floors over the same bytes, interleaved, medians of five.

Run: ``python benchmarks/ingest.py [records]``. Shared machines are noisy; believe the ratios, not the seconds. Chrome
traces have a table of their own, ``benchmarks/chrome_trace.py``.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from planewise.ingest.base import READERS
from planewise.ingest.lines import read_blocks
from planewise.ingest.planes_writer import write_planes
from planewise.ingest.strict_json import check_line, keys_may_repeat
from planewise.ingest.trace_bulk import read_bulk
from planewise.ingest.trace_decode import decode_block
from planewise.ingest.trace_events import DECODER
from planewise.ingest.trace_rows import read_strictly

REPETITIONS = 5
EXAMPLE = Path(__file__).parents[1] / "tests" / "data" / "every-kind.jsonl"


def write_trace(path: Path, records: int) -> None:
    """A trace of the worked example's record kinds, with varying numbers, ``records`` records long."""
    lines = EXAMPLE.read_text().splitlines()
    body = [json.loads(line) for line in lines[1:-1]]
    events = [record for record in body if not record["kind"].startswith("span")]
    rng = random.Random(1)
    with path.open("w") as stream:
        print(lines[0], *lines[1:5], sep="\n", file=stream)
        for _ in range(records):
            record = dict(rng.choice(events))
            for name in ("timestamp_ns", "start_ns", "duration_ns", "bytes"):
                if name in record:
                    record[name] = rng.randrange(2**53, 2**60)
            print(json.dumps(record, separators=(",", ":")), file=stream)
        print(json.dumps({"kind": "terminal", "outcome": "complete", "timestamp_ns": 2**62}), file=stream)


def iterate_lines(path: Path) -> None:
    """The floor: look at every line."""
    with path.open("rb") as stream:
        for _ in stream:
            pass


def decode_only(path: Path) -> None:
    """Typed decoding of the whole file in one call, which keeps the last of two equal keys."""
    DECODER.decode_lines(path.read_bytes())


def decode_strictly(path: Path) -> None:
    """Blocks, physical lines, UTF-8, ``-0``; no duplicate-key rule."""
    for block in read_blocks(path):
        decode_block(block)


def key_rule_by_block(path: Path) -> None:
    """The duplicate-key rule as ingest applies it where counting proves it, counting once more to make it hold."""
    for block in read_blocks(path):
        keys_may_repeat(block.data, block.data.count(b'":'))


def key_rule_by_line(path: Path) -> None:
    """The same rule line by line, as ingest falls back to."""
    with path.open() as stream:
        for line in stream:
            check_line(line.rstrip("\n"))


def key_rule_by_json(path: Path) -> None:
    """The same rule with the standard library on every line."""
    with path.open() as stream:
        for line in stream:
            json.loads(line, object_pairs_hook=dict)


def read_in_bulk(path: Path) -> None:
    """Columns straight from the lines of each kind, as plain writers' blocks are read; one thread."""
    for block in read_blocks(path):
        assert read_bulk(block) is not None


def read_every_record(path: Path) -> None:
    """The strict way, an object a record, as any other block is read; one thread."""
    for block in read_blocks(path):
        read_strictly(block)


def read_planes(path: Path) -> None:
    """The reader: every rule, Arrow batches out."""
    for _ in READERS["candle-trace"].read(path):
        pass


def read_and_write(path: Path) -> None:
    """The reader and the Parquet files."""
    with tempfile.TemporaryDirectory() as folder:
        write_planes(READERS["candle-trace"].read(path), folder)


CANDIDATES: tuple[Callable[[Path], None], ...] = (
    iterate_lines,
    decode_only,
    decode_strictly,
    key_rule_by_block,
    key_rule_by_line,
    key_rule_by_json,
    read_in_bulk,
    read_every_record,
    read_planes,
    read_and_write,
)


def main(records: int = 200_000) -> None:
    """Print one row per candidate."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        write_trace(path, records)
        peak = peak_mb(path)  # First: a child starts with the peak of its parent.
        seconds: dict[str, list[float]] = {candidate.__name__: [] for candidate in CANDIDATES}
        for _ in range(REPETITIONS):
            for candidate in CANDIDATES:
                start = time.perf_counter()
                candidate(path)
                seconds[candidate.__name__].append(time.perf_counter() - start)
        size = path.stat().st_size
    floor = statistics.median(seconds["decode_only"])
    print(f"{records} records, {size / 1e6:.0f} MB; x = times decode_only")
    for name, values in seconds.items():
        median = statistics.median(values)
        rates = f"{records / median / 1e3:8.0f} kev/s  {size / median / 1e6:7.0f} MB/s"
        print(f"{name:20} {median:7.3f} s  {rates}  x {median / floor:5.2f}")
    print(f"read_and_write alone: peak {peak:.0f} MB resident")


def peak_mb(path: Path) -> float:
    """Peak resident memory of a process that only reads and writes the trace."""
    subprocess.run([sys.executable, __file__, "--only", str(path)], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--only"]:
        read_and_write(Path(sys.argv[2]))
    else:
        main(*map(int, sys.argv[1:2]))
