"""Regenerates ``examples/captures``: two implementations interleaved, and one capture of every way to go wrong.

    python examples/make_captures.py

``eager-01`` to ``eager-08`` and ``fused-01`` to ``fused-08`` are comparable cohorts of timing captures;
``eager-profile-01`` and its like hold every plane. ``failed-01`` ended as failed, ``killed-01`` was killed between two
flushes and has no terminal record, and ``corrupt-01`` has a shard with a damaged middle.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CAPTURES = HERE / "captures"
RUNS = 8
PROFILES = 2


def record(name: str, implementation: str, *options: str, status: int = 0) -> Path:
    """Record one capture in a process of its own, as a campaign would; the process must end with ``status``."""
    folder = CAPTURES / name
    command = [sys.executable, str(HERE / "train_tiny.py"), "--implementation", implementation]
    done = subprocess.run([*command, "--run-id", name, "--output", str(folder), *options], check=False)
    if done.returncode != status:
        raise SystemExit(f"{name}: exit status {done.returncode}, expected {status}")
    return folder


def damage(folder: Path) -> None:
    """Invert 64 bytes in the middle of the ops shard; its length and its footer stay as they were."""
    shard = folder / "ops-000001.parquet"
    content = bytearray(shard.read_bytes())
    middle = len(content) // 4
    for position in range(middle, middle + 64):
        content[position] ^= 0xFF
    shard.write_bytes(content)


def main() -> None:
    """Throw the captures away and record them again; interleaving spreads drift of the machine over both cohorts."""
    if CAPTURES.exists():
        shutil.rmtree(CAPTURES)
    for number in range(1, RUNS + 1):
        for implementation in ("eager", "fused"):
            record(f"{implementation}-{number:02d}", implementation)
    profile = ("--depth", "profile")
    for number in range(1, PROFILES + 1):
        for implementation in ("eager", "fused"):
            record(f"{implementation}-profile-{number:02d}", implementation, *profile)
    record("failed-01", "eager", *profile, "--fail")
    record("killed-01", "eager", *profile, "--kill", status=-signal.SIGKILL)
    damage(record("corrupt-01", "fused", *profile))


if __name__ == "__main__":
    main()
