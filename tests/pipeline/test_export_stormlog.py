"""What is exported for stormlog is what came from it, and links that planewise found are links there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planewise import infer
from planewise.pipeline.cli import run
from planewise.pipeline.store import Store

DATA = Path(__file__).parents[1] / "data" / "stormlog"
FIXED = {"run_id": "r", "session_id": "s", "producer_id": "a/b", "source": "x", "clock_domain": "c"}
KINDS = {"clock_kind": "device", "collection_mode": "active", "provenance": "observed"}
CONTEXT = infer.CorrelationContext(**FIXED, **KINDS, host="h", pid=1, device_uuid="G")
REF = infer.EntityRef


class Gives:
    def __init__(self, capture: Any) -> None:
        self.capture = capture

    def collect(self, *, run_id: str, session_id: str) -> Any:
        return self.capture


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("name", ["run.jsonl", "bare.jsonl"])
def test_every_record_comes_back(tmp_path: Path, name: str) -> None:
    assert run(["export", "stormlog", str(DATA / name), "--output", str(tmp_path / "out")]) == 0
    assert lines(tmp_path / "out" / "run.jsonl") == lines(DATA / name)


def test_records_with_their_context_in_them_and_legacy_ones_come_back(tmp_path: Path) -> None:
    event = infer.IterationEvent(context=CONTEXT, event_id="i", iteration_ref=REF("a/b", "1"), end_ns=5)
    activity = {"activity_kind": "k", "attribution_status": "unresolved", "activity_ref": REF("p", "1")}
    spans = {"start_ns": 1, "end_ns": 9, "metadata": {"intervals": None}}
    null = infer.ActivityReferenceEvent(context=CONTEXT, event_id="n", **activity, **spans)
    legacy = {"event_type": "infer.request", "start_ns": 1.5, "event_id": 3, "request_ref": {"x": None}}
    records = [event.to_record(), null.to_record(), legacy]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert run(["export", "stormlog", str(tmp_path / "a.jsonl"), "--output", str(tmp_path / "out")]) == 0
    assert lines(tmp_path / "out" / "run.jsonl") == records


def artifact(tmp_path: Path) -> Path:
    path = infer.create_inference_artifact(tmp_path / "run" / "a", run_id="r")
    (path.parent / "t.json").write_bytes(b"{}")
    fixed = {"context": CONTEXT, "activity_kind": "k", "correlation_scope": REF("p", "s"), "cuda_correlation_id": 7}
    own = {"iteration_ref": REF("a/b", "1/2"), "start_ns": 0, "end_ns": 9}
    iteration = infer.IterationEvent(context=CONTEXT, event_id="i", **own)
    linked = {"iteration_ref": iteration.iteration_ref, "attribution_status": "linked", "activity_domain": "runtime"}
    launch = infer.ActivityReferenceEvent(event_id="l", activity_ref=REF("p", "l"), **linked, **fixed)
    open_ = {"attribution_status": "unresolved", "activity_domain": "gpu", "trace_attachment_id": "t"}
    times = {"start_ns": 5, "end_ns": 30, "metadata": {"intervals": [[0, 5], [10, 15]], "n": 1}}
    kernel = infer.ActivityReferenceEvent(event_id="k", activity_ref=REF("p", "k"), **open_, **fixed, **times)
    trace = infer.TraceAttachment("t", "Trace", path=Path("t.json"), storage="copy")
    can = infer.CaptureCapabilities()
    infer.append_inference_capture(
        path,
        run_id="r",
        session=infer.create_session_summary(session_id="s", host="h", pid=1),
        engine_adapter=Gives(infer.EngineCapture(can, (iteration, launch))),
        trace_collector=Gives(infer.TraceCapture(can, (kernel,), (trace,))),
    )
    return path


def test_our_own_artifact_goes_out_with_its_links_and_its_traces(tmp_path: Path) -> None:
    assert run(["export", "stormlog", str(artifact(tmp_path)), "--output", str(tmp_path / "out")]) == 0
    (kernel,) = [record for record in lines(tmp_path / "out" / "run.jsonl") if record.get("event_id") == "k"]
    assert kernel["iteration_ref"] == {"producer_id": "a/b", "id": "1/2"}
    assert (kernel["attribution_status"], kernel["end_ns"], kernel["cuda_correlation_id"]) == ("linked", 30, 7)
    assert kernel["metadata"] == {"intervals": [[0, 5], [10, 15]], "n": 1}
    envelope = json.loads((tmp_path / "out" / "stormlog_run.json").read_text())
    (jsonl, trace) = envelope["attachments"]
    assert (envelope["run_id"], jsonl["path"], trace["metadata"]["bytes"]) == ("r", "run.jsonl", 2)
    assert (tmp_path / "out" / trace["path"]).read_bytes() == b"{}"


def test_a_run_of_a_store_is_exported_by_its_id(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ingest", str(artifact(tmp_path)), "--store", str(tmp_path / "s")]) == 0
    (staged,) = Store.open(tmp_path / "s").staged()
    arguments = ["export", "stormlog", staged.run_id, "--store", str(tmp_path / "s"), "--output"]
    assert run([*arguments, str(tmp_path / "out")]) == 0
    assert len(list((tmp_path / "out" / "attachments").iterdir())) == 1
    assert run([*arguments, str(tmp_path / "out")]) == 3
    assert "already" in capsys.readouterr().err


def test_a_run_without_an_engine_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = {"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}
    (tmp_path / "t.json").write_text(json.dumps({"schemaVersion": 1, **trace}))
    assert run(["export", "stormlog", str(tmp_path / "t.json"), "--output", str(tmp_path / "out")]) == 3
    assert "no events of an inference engine" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
