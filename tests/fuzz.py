"""Mutants of trace files through ingest: no traceback, no hang, no memory without bound, nothing half ingested.

Run: ``python tests/fuzz.py [--mutants N] [--seed S] [--jobs J] [FILE_OR_FOLDER ...]``. Each mutant is a file of the
inputs with one to four damages, plain or in its gzip form, sometimes cut to its ends. A mutant passes when it is
refused, or read so that the ledger equals the rows of every plane. Every twentieth goes through the whole stage into a
store, which must hold the run or nothing of it. A failure is kept as a file, with its traceback beside it.
"""

from __future__ import annotations

import argparse
import gzip
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from mutate import mutant

from planewise.ingest.base import detect_format
from planewise.ingest.planes_writer import write_planes
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store
from planewise.recorder.errors import InputRefused

HANG_SECONDS = 10
MEMORY_MIB = 400
"""How far a process may grow over what it holds before the first mutant: libraries, and the inputs themselves."""
ENDS = 24 << 10
LARGEST_SEED = 2 << 20
NO_RECORDS = {"runs", "ingest_counts", "ingest_issues", "collectives"}


class Hang(Exception):
    """A mutant took longer than ``HANG_SECONDS``."""


def seeds(inputs: Iterable[Path]) -> list[tuple[str, bytes]]:
    """(name, bytes) of every file that is small enough, what is compressed as its text too."""
    found = []
    for path in sorted(file for given in inputs for file in ([given] if given.is_file() else given.rglob("*"))):
        if not path.is_file() or path.stat().st_size > LARGEST_SEED:
            continue
        data = path.read_bytes()
        found.append((path.name, data))
        if data[:2] == b"\x1f\x8b":
            found.append((f"{path.name} (text)", gzip.decompress(data)))
    return found


def run(inputs: list[Path], mutants: int, seed: int) -> dict[str, Any]:
    """What became of the mutants of one process."""
    rng, known = random.Random(seed), seeds(inputs)
    totals: Counter[str] = Counter()
    by_name: Counter[str] = Counter()
    failures, slowest = [], (0.0, "")
    signal.signal(signal.SIGALRM, _alarm)
    before = _peak_mib()
    for number in range(mutants):
        name, data = rng.choice(known)
        damaged = mutant(_ends(data, rng), rng)
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
            fate, why = _fate(Path(folder), damaged, whole_stage=number % 20 == 0)
        totals[fate] += 1
        by_name[name] += 1
        slowest = max(slowest, (time.perf_counter() - begun, name))
        if why:
            failures.append((name, seed, number, why, damaged))
    return {
        "totals": totals,
        "seeds": len(by_name),
        "slowest": slowest,
        "memory": _peak_mib() - before,
        "failures": failures,
    }


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _ends(data: bytes, rng: random.Random) -> bytes:
    """Most mutants of a long file are of its first and last part, so that a damage does not drown in what is whole."""
    if len(data) <= 2 * ENDS or rng.random() < 0.02:
        return data
    return data[:ENDS] + (data[-ENDS:] if rng.random() < 0.5 else b"")


def _alarm(*_: object) -> None:
    raise Hang


def _fate(folder: Path, data: bytes, *, whole_stage: bool) -> tuple[str, str]:
    """(refused, ingested or failed, the traceback of a failure)."""
    path = folder / "mutant"
    path.write_bytes(data)
    signal.alarm(HANG_SECONDS)
    try:
        fate = _through_the_stage(folder, path) if whole_stage else _through_the_reader(folder, path)
    except InputRefused:
        return "refused", ""
    except BaseException as error:  # PanicException of polars is no Exception.
        if isinstance(error, KeyboardInterrupt):
            raise
        return "failed", traceback.format_exc()
    finally:
        signal.alarm(0)
    return fate, ""


def _through_the_reader(folder: Path, path: Path) -> str:
    ledger: Counter[str] = Counter()
    rows = write_planes(_counted(detect_format(path).read(path), ledger), folder / "run")
    if ledger:
        kept = {plane: count for plane, count in rows.items() if plane not in NO_RECORDS}
        assert kept == {
            plane: count for plane, count in ledger.items() if plane and count and plane not in NO_RECORDS
        }, (kept, ledger)
    return "ingested"


def _counted(batches: Iterable[Any], ledger: Counter[str]) -> Iterator[Any]:
    for batch in batches:
        if batch.plane == "ingest_counts":
            for count in batch.table.to_pylist():
                ledger[count["plane"]] += count["records"]
        yield batch


def _through_the_stage(folder: Path, path: Path) -> str:
    store = Store.open(folder / "store", create=True)
    (result,) = ingest_sources(store, [path])
    held = [entry.name for entry in (store.path / "staging").iterdir() if not entry.name.startswith(".")]
    assert len(held) == (result.status == "ingested"), (result, held)
    return result.status


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", type=Path, nargs="*", default=[Path(__file__).parent / "data"])
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "planewise-fuzz")
    options = parser.parse_args()
    shutil.rmtree(options.keep, ignore_errors=True)
    share = -(-options.mutants // options.jobs)
    begun = time.perf_counter()
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        parts = [pool.submit(run, options.inputs, share, options.seed + job) for job in range(options.jobs)]
        results = [part.result() for part in parts]
    totals = sum((result["totals"] for result in results), Counter())
    print(f"{totals.total():,} mutants in {time.perf_counter() - begun:.0f} s: {dict(totals)}")
    for result in results:
        took, name = result["slowest"]
        print(f"{result['seeds']} seeds; slowest {took:.2f} s ({name}); memory grew by {result['memory']:.0f} MiB")
    failures = [failure for result in results for failure in result["failures"]]
    for name, seed, number, why, data in failures:
        options.keep.mkdir(parents=True, exist_ok=True)
        (options.keep / f"{seed}-{number}.bin").write_bytes(data)
        (options.keep / f"{seed}-{number}.txt").write_text(f"{name}\n{why}", errors="replace")
    if failures:
        print(f"{len(failures)} failures are kept in {options.keep}")
    sys.exit(bool(failures) or any(result["memory"] > MEMORY_MIB for result in results))


if __name__ == "__main__":
    main()
