"""What ingest of a PyTorch profiler trace costs, in the text layout that torch 2.13 exports, against plain parsers.

Run: ``python benchmarks/chrome_trace.py [MB ...] [--hta PYTHON] [--file TRACE] [--repetitions N]``. Each candidate runs
in a process of its own, interleaved; believe the ratios. ``PYTHON`` is an interpreter with HolisticTraceAnalysis
0.5.0, which pins packages of its own; only its parser is timed, not the analyses that follow it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MEASURE = """
import resource, sys, time
{setup}
begun, used = time.perf_counter(), time.process_time()
{work}
wall, cpu = time.perf_counter() - begun, time.process_time() - used
peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print("MEASURED", wall, cpu, peak / 1024, flush=True)
import os; os._exit(0)
"""

_TWO_FILES = """
from pathlib import Path; import shutil, tempfile
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store
scratch = tempfile.TemporaryDirectory()
second = Path(scratch.name) / "second.json"
shutil.copyfile(sys.argv[1], second)
with second.open("ab") as stream: stream.write(b" ")
time.sleep(3)  # As traces lie there when they are ingested; one that has just been written is digested again and again.
store = Store.open(Path(scratch.name) / "store", create=True)
"""
"""The whole stage over two files of one size, two processes reading; the work is counted as two."""

CANDIDATES = {
    "planewise, all planes written": (
        "from pathlib import Path; import tempfile\n"
        "from planewise.ingest.kineto import KinetoReader\n"
        "from planewise.ingest.planes_writer import write_planes",
        "with tempfile.TemporaryDirectory() as folder: write_planes(KinetoReader().read(Path(sys.argv[1])), folder)",
    ),
    "planewise, two files, --jobs 2": (
        _TWO_FILES,
        "found = ingest_sources(store, [Path(sys.argv[1]), second], jobs=2)\n"
        "assert [result.status for result in found] == ['ingested'] * 2, found",
    ),
    "orjson.loads": ("import orjson; data = open(sys.argv[1], 'rb').read()", "orjson.loads(data)"),
    "orjson.loads, collector off": (
        "import gc, orjson; gc.disable(); data = open(sys.argv[1], 'rb').read()",
        "orjson.loads(data)",
    ),
}
HTA = (
    "from hta.common.trace_parser import parse_trace_dataframe\n"
    "from hta.configs.parser_config import ParserConfig; config = ParserConfig.get_default_cfg()",
    "parse_trace_dataframe(sys.argv[1], config)",
)


def write_trace(path: Path, size: int) -> int:
    """A trace of about ``size`` bytes: steps of operations in pairs, each with launch, arrow and kernel. Its events."""
    rng = random.Random(1)
    keys = '"schemaVersion": 1,\n    "deviceProperties": [],\n    "distributedInfo": {"rank": 0, "world_size": 8},\n'
    events = written = 0
    with path.open("w") as stream:
        stream.write(f' {{\n    {keys}    "baseTimeNanoseconds": 1790857026000000000,\n    "traceEvents": [\n    \n')
        for step in _steps(rng):
            text = ",\n".join(step)
            stream.write(",\n" + text if events else text)
            events += len(step)
            written += len(text)
            if written >= size:
                break
        stream.write('\n  ],"traceName": "/tmp/trace.json" }\n')
    return events


def _steps(rng: random.Random) -> Iterator[list[str]]:
    names = ("empty", "add", "mul", "linear", "addmm", "transpose", "view", "as_strided", "copy_", "to", "zeros", "bmm")
    now, link = 5_247_954_242_284_720, 0
    while True:
        start, host, device = now, [], []
        for _ in range(60):
            link += 1
            length = rng.randrange(8_000, 40_000)
            ids = f'"External id": {link},"Record function id": 0, "Sequence number": {link}, "Fwd thread id": 0'
            dims = f'"Input Dims": [[{rng.choice((8, 16))}, 128, 1024], [1024], [], []], "Ev Idx": {link}'
            more = '"Concrete Inputs": ["", "", "11", ""], "Input type": ["float", "float", "Scalar", ""], '
            strides = '"Input Strides": [[131072, 1024, 1], [1], [], []], '
            for inset in (0, 1_000):
                name = f"aten::{rng.choice(names)}"
                args = f"{ids}, {more}{strides}{dims}"
                host.append(_slice("cpu_op", name, 2657, 2657, now + inset, length - 2 * inset, args))
            device += _launch(rng, link, now + 2_000, length - 4_500)
            now += length + rng.randrange(500, 3_000)
        step = _slice("user_annotation", "ProfilerStep#1", 2657, 2657, start - 500, now - start, '"External id": 0')
        yield [step, *host, *device]
        now += 20_000


def _launch(rng: random.Random, link: int, start: int, length: int) -> Iterator[str]:
    kernel = f"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, {rng.randrange(30)}>"
    begin = start + length + rng.randrange(1_000, 9_000)
    ids = f'"External id": {link}, "correlation": {link}'
    yield _slice("cuda_runtime", "cudaLaunchKernel", 2657, 2657, start, length, f'"cbid": 211, {ids}')
    arrow = (
        '  {{\n    "ph": "{}",\n    "id": {},\n    "pid": {},\n    "tid": {},\n    "ts": {},\n    "cat": "ac2g"\n  }}'
    )
    yield arrow.format("s", link, 2657, 2657, _us(start))
    sizes = '"queued": 0, "device": 0, "context": 1, "stream": 7, "registers per thread": 16, "shared memory": 0'
    shape = '"blocks per SM": 1.185185, "warps per SM": 4.740741, "grid": [128, 1, 1], "block": [128, 1, 1]'
    yield _slice("kernel", kernel, 0, 7, begin, rng.randrange(1_000, 30_000), f"{ids}, {sizes}, {shape}")
    yield arrow.format("f", link, 0, 7, _us(begin))


def _slice(cat: str, name: str, pid: int, tid: int, start: int, length: int, args: str) -> str:
    places = f'"pid": {pid},\n    "tid": {tid},\n    "ts": {_us(start)},\n    "dur": {_us(length)}\n    ,\n'
    head = f'    "ph": "X",\n    "cat": "{cat}",\n    "name": "{name}",\n    '
    return f'  {{\n{head}{places}    "args": {{\n      {args}\n    }}\n  }}'


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def measure(python: str, setup: str, work: str, path: Path) -> tuple[float, float, float] | None:
    """Wall seconds, CPU seconds (of its own process) and peak MB of one run, a file; None when it failed."""
    code = _MEASURE.format(setup=setup, work=work)
    ran = subprocess.run([python, "-W", "ignore", "-c", code, str(path)], capture_output=True, text=True, check=False)
    lines = [line.split()[1:] for line in ran.stdout.splitlines() if line.startswith("MEASURED")]
    if not lines:
        print(ran.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    wall, cpu, peak = map(float, lines[-1])
    files = 2 if setup is _TWO_FILES else 1
    return wall / files, cpu / files, peak


def compare(path: Path, repetitions: int, hta: str | None) -> None:
    """One table for one file: medians, and ratios to orjson.loads."""
    candidates = {name: (sys.executable, *code) for name, code in CANDIDATES.items()}
    if hta:
        candidates["HTA 0.5.0, parser alone"] = (hta, *HTA)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in candidates}
    for _ in range(repetitions):
        for name, candidate in candidates.items():
            if (run := measure(*candidate, path)) is not None:
                found[name].append(run)
    size = path.stat().st_size / 1e6
    floor = [statistics.median(run[at] for run in found["orjson.loads"]) for at in (0, 1)]
    print(f"\n{path.name}, {size:.0f} MB\n{'':32} wall s  x orjson  CPU s  x orjson  peak MB")
    for name, runs in found.items():
        if runs:
            wall, cpu, peak = (statistics.median(run[at] for run in runs) for at in range(3))
            print(f"{name:32} {wall:6.2f}  {wall / floor[0]:8.2f}  {cpu:5.2f}  {cpu / floor[1]:8.2f}  {peak:7.0f}")


def main() -> None:
    """Compare on synthetic traces of the given sizes, and on given files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, help="sizes of synthetic traces in MB (default 100)")
    parser.add_argument("--hta", help="interpreter with HolisticTraceAnalysis")
    parser.add_argument("--file", action="append", type=Path, default=[], help="an uncompressed trace")
    parser.add_argument("--repetitions", type=int, default=5)
    given = parser.parse_args()
    for path in given.file:
        compare(path, given.repetitions, given.hta)
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes or ([] if given.file else [100]):
            path = Path(folder) / f"trace-{size}.json"
            write_trace(path, size * 10**6)
            compare(path, given.repetitions, given.hta)
            path.unlink()


if __name__ == "__main__":
    main()
