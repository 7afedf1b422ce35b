"""Processes that append to one artifact at once lose nothing, and a killed one leaves nothing that counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planewise import infer
from planewise.ingest.base import READERS

TRIALS = 100
PROGRAM = """
import sys
from pathlib import Path
from planewise import infer

folder, own = Path(sys.argv[1]), sys.argv[2]
fixed = {"run_id": "r", "session_id": "s", "producer_id": own, "source": "x", "clock_domain": "c"}
kinds = {"clock_kind": "device", "collection_mode": "active", "provenance": "observed"}
context = infer.CorrelationContext(**fixed, **kinds, host="h", pid=1, device_uuid="G")
session = infer.create_session_summary(session_id="s", host="h", pid=1)

class Adapter:
    def collect(self, *, run_id, session_id):
        events = []
        for number in range(3):
            ref = infer.EntityRef(own, str(number))
            kind = {"activity_kind": "k", "attribution_status": "unresolved"}
            events.append(infer.ActivityReferenceEvent(context=context, event_id=str(number), activity_ref=ref, **kind))
        return infer.EngineCapture(infer.CaptureCapabilities(), events)

print('ready', flush=True)
for line in sys.stdin:
    infer.append_inference_capture(folder / line.strip(), run_id="r", session=session, engine_adapter=Adapter())
    print("done", flush=True)
"""


@pytest.fixture
def workers(tmp_path: Path) -> list[subprocess.Popen[str]]:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path), name], **streams)  # type: ignore[call-overload]
        for name in ("one", "two")
    ]
    for worker in started:
        assert worker.stdout.readline() == "ready\n"
    return started


def activities(artifact: Path) -> list[str]:
    found = [part.table for part in READERS["inference"].read(artifact) if part.plane == "activities"]
    return sorted(name for table in found for name in table.column("activity_id").to_pylist())


@pytest.mark.slow
def test_two_processes_that_append_at_once_lose_nothing(tmp_path: Path, workers: list[subprocess.Popen[str]]) -> None:
    expected = [f"{name}/{number}" for name in ("one", "two") for number in range(3)]
    for trial in range(TRIALS):
        infer.create_inference_artifact(tmp_path / str(trial), run_id="r")
        for worker in workers:
            worker.stdin.write(f"{trial}\n")  # type: ignore[union-attr]
            worker.stdin.flush()  # type: ignore[union-attr]
        assert [worker.stdout.readline() for worker in workers] == ["done\n"] * 2  # type: ignore[union-attr]
        assert activities(tmp_path / str(trial)) == expected
    for worker in workers:
        worker.communicate()
        assert worker.returncode == 0


def test_a_writer_that_dies_before_it_counts_leaves_nothing(tmp_path: Path) -> None:
    infer.create_inference_artifact(tmp_path / "a", run_id="r")
    death = (
        "from planewise.pipeline import infer_index; infer_index.Index.add_part = lambda *a: __import__('os')._exit(9)"
    )
    command = [
        sys.executable,
        "-c",
        PROGRAM.replace("print('ready'", f"{death}\nprint('ready'", 1),
        str(tmp_path),
        "one",
    ]
    done = subprocess.run(command, input="a\n", text=True, capture_output=True)
    assert done.returncode == 9
    assert os.listdir(tmp_path / "a" / "parts") == ["00000001"]
    assert activities(tmp_path / "a") == []
    again = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path), "two"], input="a\n", text=True, check=True)
    assert again.returncode == 0
    assert activities(tmp_path / "a") == ["two/0", "two/1", "two/2"]
