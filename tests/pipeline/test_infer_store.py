"""Appends to an inference artifact: whole or not at all, what is new alone, and refused with nothing changed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planewise import infer
from planewise.ingest.base import READERS
from planewise.pipeline import infer_store
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store
from planewise.pipeline.stores import open_store
from planewise.recorder.errors import Conflict, ContractError, UsageError
from support import emptied

FIXED = {"run_id": "r", "session_id": "s", "producer_id": "p", "source": "x", "clock_domain": "c"}
KINDS = {"clock_kind": "device", "collection_mode": "active", "provenance": "observed"}
CONTEXT = infer.CorrelationContext(**FIXED, **KINDS, host="h", pid=1, device_uuid="G")
SCOPE, IT = infer.EntityRef("p", "scope"), infer.EntityRef("p", "it-1")
SESSION = infer.create_session_summary(session_id="s", host="h", pid=1)
CAN = infer.CaptureCapabilities(("a", "b"), ("a",), ("a",))


class Gives:
    def __init__(self, capture: Any) -> None:
        self.capture = capture

    def collect(self, *, run_id: str, session_id: str) -> Any:
        if isinstance(self.capture, Exception):
            raise self.capture
        return self.capture


def iteration(name: str = "it:1", **values: Any) -> infer.IterationEvent:
    own = {"start_ns": 0, "end_ns": 100, "iteration_ref": IT, "context": CONTEXT, **values}
    return infer.IterationEvent(event_id=name, **own)


def launch(name: str = "l1", number: int = 7, **values: Any) -> infer.ActivityReferenceEvent:
    own = {"activity_domain": "runtime", "iteration_ref": IT, "attribution_status": "linked"}
    return kernel(name, number, **{**own, **values})


def kernel(name: str = "k1", number: int = 7, **values: Any) -> infer.ActivityReferenceEvent:
    own = {"activity_kind": "gpu_kernel", "activity_domain": "gpu", "attribution_status": "unresolved"}
    place = {"correlation_scope": SCOPE, "cuda_correlation_id": number, "start_ns": 10, "end_ns": 30}
    names = {"event_id": name, "activity_ref": infer.EntityRef("t", name), "context": CONTEXT}
    return infer.ActivityReferenceEvent(**{**names, **own, **place, **values})


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    return infer.create_inference_artifact(tmp_path / "run" / "a", run_id="r")


def append(path: Path, engine: Any = None, trace: Any = None, attachments: tuple[Any, ...] = (), **values: Any) -> Any:
    adapter = None if engine is None else Gives(infer.EngineCapture(CAN, engine))
    collector = None if trace is None else Gives(infer.TraceCapture(CAN, trace, attachments))
    own = {"run_id": "r", "session": SESSION, "engine_adapter": adapter, "trace_collector": collector, **values}
    return infer.append_inference_capture(path, **own)


def content(path: Path) -> dict[str, bytes]:
    """Every file that counts; what SQLite writes into its header while nothing changes is none."""
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def query(artifact: Path, text: str) -> list[tuple[Any, ...]]:
    """What a query says of the artifact, read as ingest reads it."""
    tiny = emptied()
    for part in READERS["inference"].read(artifact):
        tiny.insert(part.plane, part.table)
    return tiny.rows(text)


def test_an_artifact_is_made_once_and_for_one_run(artifact: Path) -> None:
    with pytest.raises(Conflict):
        infer.create_inference_artifact(artifact, run_id="r")
    with pytest.raises(UsageError):
        infer.create_inference_artifact(artifact / "b", run_id="")
    with pytest.raises(UsageError, match="no inference artifact"):
        append(artifact.parent)


def test_each_component_has_a_record_and_an_absent_one_says_why(artifact: Path) -> None:
    failed = infer.AbsentComponent("failed", "no CUPTI")
    append(artifact, [], trace_collector=failed)
    found = query(
        artifact,
        "SELECT attributes->>'component', attributes->>'available', attributes->>'$.metadata.reason',"
        " attributes->>'$.metadata.detail', attributes->>'collected' FROM engine_events"
        " WHERE event_type = 'infer.capabilities' ORDER BY seq",
    )
    assert found == [
        ("engine_adapter", "true", None, None, '["a"]'),
        ("trace_collector", "false", "failed", "no CUPTI", "[]"),
    ]


def test_nothing_asked_for_is_told_as_such(artifact: Path) -> None:
    append(artifact)
    reasons = (
        "SELECT DISTINCT attributes->>'$.metadata.reason' FROM engine_events WHERE event_type LIKE '%capabilities'"
    )
    assert query(artifact, reasons) == [("not_requested",)]


def test_links_reach_from_one_append_to_another_in_any_order(artifact: Path) -> None:
    append(artifact, None, [kernel()])
    append(artifact, [iteration(), launch()])
    links = "SELECT activity_id, status, iteration_id FROM activity_links WHERE status <> 'recorded'"
    assert query(artifact, links) == [("t/k1", "linked", "p/it-1")]


def test_a_repeated_append_changes_nothing(artifact: Path) -> None:
    first = append(artifact, [iteration(), launch()], [kernel()])
    before = content(artifact)
    again = append(artifact, [iteration(), launch()], [kernel()])
    assert (first.status, first.activities, again.status, again.part) == ("appended", 2, "unchanged", first.part)
    assert content(artifact) == before


def test_a_fact_that_is_there_is_not_written_again(artifact: Path) -> None:
    append(artifact, [iteration(), launch()])
    receipt = append(artifact, [iteration(), launch(), launch("l2", 8)], [kernel(), kernel()])
    assert (receipt.status, receipt.activities) == ("appended", 2)
    assert query(artifact, "SELECT count(*), count(DISTINCT seq) FROM activities") == [(3, 3)]


@pytest.mark.parametrize(
    "second",
    [
        [kernel("k1", 8)],
        [kernel("k2", 8, activity_ref=infer.EntityRef("t", "k1"))],
        [kernel("k3"), kernel("k3", end_ns=31)],
        [kernel("k1", metadata={"name": "gemm"})],
        [kernel("k1", context=replace(CONTEXT, clock_domain="d"))],
    ],
    ids=["event", "entity", "within", "metadata", "context"],
)
def test_one_identity_with_two_contents_is_a_conflict(artifact: Path, second: list[Any]) -> None:
    append(artifact, None, [kernel()])
    before = content(artifact)
    with pytest.raises(Conflict, match="another content"):
        append(artifact, None, second)
    assert content(artifact) == before


def test_an_entity_may_have_two_event_ids_and_is_kept_once(artifact: Path) -> None:
    append(artifact, [iteration("a")])
    assert append(artifact, [iteration("b"), iteration("c", iteration_ref=infer.EntityRef("p", "it-2"))]).events == 3
    assert query(artifact, "SELECT event_id FROM engine_events WHERE event_type = 'infer.iteration' ORDER BY seq") == [
        ("a",),
        ("c",),
    ]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([{"event_type": "infer.iteration"}], "found a dict"),
        ([iteration(context=replace(CONTEXT, run_id="q"))], "run_id 'q'"),
        ([iteration(context=replace(CONTEXT, session_id="q"))], "session_id 'q'"),
        ([iteration(metadata={"x": float("nan")})], "no JSON"),
        ([launch(metadata={"x": float("inf")})], "no JSON"),
        ([launch(metadata={"x": object()})], "no JSON"),
        ([launch(start_ns=2**63, end_ns=2**63)], "63 bits"),
        ([iteration(start_ns=1, end_ns=2**63)], "63 bits"),
        ([launch("\ud800")], "no text"),
        ([launch(trace_attachment_id="ghost")], "not registered"),
    ],
)
def test_what_breaks_a_rule_changes_nothing(artifact: Path, events: list[Any], message: str) -> None:
    append(artifact, [iteration()])
    before = content(artifact)
    with pytest.raises(ContractError, match=message):
        append(artifact, events)
    assert content(artifact) == before


def test_another_run_or_session_is_refused(artifact: Path) -> None:
    append(artifact)
    with pytest.raises(ContractError, match="belongs to the run"):
        append(artifact, run_id="q")
    with pytest.raises(ContractError, match="belongs to the session"):
        append(artifact, session=replace(SESSION, session_id="t"))
    with pytest.raises(ContractError, match="pid"):
        append(artifact, session=replace(SESSION, pid=-1))


def test_what_collect_raises_goes_through(artifact: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        append(artifact, engine_adapter=Gives(KeyError("mine")))
    with pytest.raises(ContractError, match="EngineCapture"):
        append(artifact, engine_adapter=Gives(None))
    assert append(artifact).part == 1


def attachment(name: str = "t1", **values: Any) -> infer.TraceAttachment:
    return infer.TraceAttachment(name, "Trace", **values)


def test_a_trace_is_measured_and_copied_when_asked(artifact: Path) -> None:
    (artifact.parent / "t.json").write_bytes(b"{}")
    (artifact.parent / "u.json").write_bytes(b"[]")
    traces = (attachment("t1", path=Path("t.json")), attachment("t2", path=Path("u.json"), storage="copy"))
    append(artifact, None, [kernel(trace_attachment_id="t1")], traces)
    rows = "SELECT event_id, attributes FROM engine_events WHERE event_type = 'envelope.attachment' ORDER BY 1"
    (first, second) = [json.loads(text) for _, text in query(artifact, rows)]
    assert (first["path"], first["bytes"], first["sha256"]) == ("t.json", 2, hashlib.sha256(b"{}").hexdigest())
    assert (artifact / second["path"]).read_bytes() == b"[]"
    store = Store.open(artifact.parent.parent / "store", create=True)
    assert [result.status for result in ingest_sources(store, [artifact])] == ["ingested"]
    with open_store(store.path) as opened:
        assert opened.sql("SELECT path, title, bytes FROM attachments").fetchall() == [(second["path"], "Trace", 2)]
        assert opened.sql("FROM ingest_issues").fetchall() == []


@pytest.mark.parametrize(("write", "code"), [(b"other", "attachment_differs"), (None, "attachment_missing")])
def test_a_trace_that_is_not_what_it_was_is_an_issue(artifact: Path, write: bytes | None, code: str) -> None:
    file = artifact.parent / "t.json"
    file.write_bytes(b"{}")
    append(artifact, None, [kernel()], (attachment(path=Path("t.json")),))
    file.unlink() if write is None else file.write_bytes(write)
    assert query(artifact, "SELECT code, severity FROM ingest_issues") == [(code, "warning")]


@pytest.mark.parametrize(
    "values",
    [
        {"path": Path("../secret")},
        {"path": Path("/etc/hostname")},
        {"path": Path("link")},
        {"path": Path("absent")},
        {"path": Path("a")},
        {"path": 3},
        {"url": "ftp://x/y"},
        {"url": "javascript:alert(1)"},
        {"url": "plain"},
    ],
)
def test_a_trace_outside_the_run_or_of_an_odd_scheme_is_refused(artifact: Path, values: dict[str, Any]) -> None:
    (artifact.parent.parent / "secret").write_bytes(b"x")
    (artifact.parent / "link").symlink_to(artifact.parent.parent / "secret")
    before = content(artifact)
    with pytest.raises(ContractError, match="attachment 't1'"):
        append(artifact, None, [], (attachment(**values),))
    assert content(artifact) == before


def test_an_attachment_may_come_again_but_not_with_other_content(artifact: Path) -> None:
    append(artifact, None, [], (attachment(url="s3://b/k"),))
    append(artifact, [iteration()], [kernel(trace_attachment_id="t1")])
    append(artifact, None, [kernel("k2")], (attachment(url="s3://b/k"),))
    with pytest.raises(Conflict, match="another url"):
        append(artifact, None, [], (attachment(url="s3://b/other"),))


def test_a_failure_while_writing_leaves_envelope_and_parts(artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(artifact, [iteration()])
    before = content(artifact)

    def fails(*arguments: Any) -> Any:
        raise OSError(28, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(infer_store, "write_part", fails)
        with pytest.raises(OSError, match="no space"):
            append(artifact, None, [kernel()], (attachment(url="s3://b/k"),))
    after = content(artifact)
    assert {name: own for name, own in after.items() if not name.startswith("index")} == {
        name: own for name, own in before.items() if not name.startswith("index")
    }
    assert append(artifact, None, [kernel()], (attachment(url="s3://b/k"),)).part == 2


def test_a_clock_names_the_boot_of_its_own_host_alone(artifact: Path) -> None:
    append(artifact)
    clocks = "SELECT DISTINCT clock_id FROM engine_events WHERE event_type = 'infer.capabilities'"
    assert query(artifact, clocks) == [("h/unix_epoch_ns",)]


def test_events_may_come_from_a_generator(artifact: Path) -> None:
    receipt = append(artifact, (launch(f"l{n}", n) for n in range(20_000)), (kernel(f"k{n}", n) for n in range(20_000)))
    assert receipt.activities == 40_000
    assert append(artifact, None, [kernel("k7", 7)]).activities == 0
