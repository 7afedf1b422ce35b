"""What recording one event costs in the hot loop, as ratios in one interleaved run: ``python benchmarks/recorder.py``.

The floors are an empty call of eight keyword arguments and a tuple appended to a list. Writing is included in the rows
of the recorder: the background thread competes for the interpreter while the loop runs. Medians of the repetitions;
shared machines are noisy, so believe the ratios, not the nanoseconds.
"""

from __future__ import annotations

import argparse
import gc
import platform
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from planewise import ProfileRun, SpanKind, TraceSession

Loop = Callable[[int], None]


def empty(*, span: str, name: str, shape: Any, dtype: str, device: str, duration: int, start: int, inputs: Any) -> None:
    """The floor: eight arguments and nothing done."""


def empty_call(events: int) -> None:
    """Call the floor once per event."""
    for number in range(events):
        empty(span="s1", name="mm", shape=(4, 8), dtype="f32", device="cpu", duration=number, start=1, inputs=("a",))


def tuple_append(events: int) -> None:
    """Append a tuple of the same eight values to a list, as the simplest recorder would, unlocked and unwritten."""
    rows: list[Any] = []
    append = rows.append
    for number in range(events):
        append(("s1", "mm", (4, 8), "f32", "cpu", number, 1, ("a",)))


def locked_append(events: int) -> None:
    """The same under a lock, as any recorder that takes threads must."""
    rows: list[Any] = []
    lock = threading.RLock()
    for number in range(events):
        with lock:
            rows.append(("s1", "mm", (4, 8), "f32", "cpu", number, 1, ("a",)))


def flat_extend(events: int) -> None:
    """Extend one flat list under a lock: what the recorder's buffer does."""
    flat: list[Any] = []
    lock = threading.RLock()
    for number in range(events):
        with lock:
            flat.extend(("s1", "mm", (4, 8), "f32", "cpu", number, 1, ("a",)))


def recorded(record: Callable[[TraceSession, int], None]) -> Loop:
    """A loop that records into a real capture; opening and finishing are outside the timed part."""

    def loop(events: int) -> None:
        record(SESSION[0], events)

    return loop


RUN = ProfileRun.inference("bench", 1, "cpu")
SESSION: list[TraceSession] = []


def record_ops(session: TraceSession, events: int) -> None:
    """``record_op`` with eight facts."""
    root = session.root_id
    for number in range(events):
        session.record_op(
            root,
            "mm",
            shape=(4, 8),
            dtype="f32",
            device="cpu",
            duration_ns=1,
            timestamp_ns=number,
            inputs=("a",),
            input_dense_bytes=128,
        )


def record_scalars(session: TraceSession, events: int) -> None:
    """``record_scalar``."""
    root = session.root_id
    for _ in range(events):
        session.record_scalar(root, "loss", 0.5)


def record_spans(session: TraceSession, events: int) -> None:
    """A span begun and ended: two rows."""
    for _ in range(events):
        with session.begin_span("mm", SpanKind.OP):
            pass


LOOPS: dict[str, Loop] = {
    "empty call, 8 keywords": empty_call,
    "append tuple": tuple_append,
    "append tuple, lock": locked_append,
    "extend flat list, lock": flat_extend,
    "record_scalar": recorded(record_scalars),
    "record_op": recorded(record_ops),
    "span (start and end)": recorded(record_spans),
}


def timed(loop: Loop, events: int) -> float:
    """Nanoseconds per event of one loop over a fresh capture."""
    with tempfile.TemporaryDirectory() as folder, TraceSession.open(Path(folder) / "c", RUN) as session:
        SESSION[:] = [session]
        time.sleep(0.2)  # record_op's start times must lie in the past.
        gc.collect()
        start = time.perf_counter_ns()
        loop(events)
        took = time.perf_counter_ns() - start
    return took / events


def main() -> None:
    """Measure every loop in turn, repeatedly, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=7)
    options = parser.parse_args()
    samples: dict[str, list[float]] = {name: [] for name in LOOPS}
    for _ in range(options.repetitions):
        for name, loop in LOOPS.items():
            samples[name].append(timed(loop, options.events))
    medians = {name: statistics.median(found) for name, found in samples.items()}
    floor, append = medians["empty call, 8 keywords"], medians["append tuple"]
    print(
        f"Python {platform.python_version()}, pyarrow {pa.__version__}, {platform.machine()}, {options.events} events"
    )
    print(f"{'':24}{'ns/event':>10}{'range':>16}{'x empty call':>14}{'x append':>10}")
    for name, median in medians.items():
        span = f"{min(samples[name]):.0f}-{max(samples[name]):.0f}"
        print(f"{name:24}{median:10.0f}{span:>16}{median / floor:14.1f}{median / append:10.1f}")


if __name__ == "__main__":
    main()
