"""Automatic capture: what the profiler kept of a region becomes planes, exactly, and never harms the program."""

from __future__ import annotations

import importlib.util
import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the torch extra is not installed")

import planewise as pw  # noqa: E402
from planewise.pipeline.ingest_stage import ingest_sources  # noqa: E402
from planewise.pipeline.store import Store  # noqa: E402
from planewise.pipeline.stores import OpenStore, open_store  # noqa: E402
from planewise.recorder import torch_record  # noqa: E402
from planewise.recorder.torch_profile import RowWriter, Walked  # noqa: E402
from planewise.recorder.torch_record import _write_device_work, record_torch, torch_contract  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_tiny.py"
ACTIVATIONS = (
    "SELECT op_name, count(*) FROM memory_events WHERE category = 'activation' AND action = 'alloc' GROUP BY 1"
)


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def session(tmp_path: Path) -> pw.TraceSession:
    run = pw.ProfileRun.training("t::update", 1, "cpu").capture_contract(torch_contract())
    return pw.TraceSession.open(tmp_path / "capture", run, run_id="r")


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[], OpenStore]:
    def of() -> OpenStore:
        store = Store.open(tmp_path / "store", create=True)
        (result,) = ingest_sources(store, [tmp_path / "capture"])
        assert result.status == "ingested", result.message
        return open_store(store.path)

    return of


def rows(store: OpenStore, query: str) -> list[tuple[Any, ...]]:
    return store.sql(query).fetchall()


def status(store: OpenStore) -> str:
    ((found,),) = rows(store, "SELECT status FROM run_health")
    return str(found)


def model(*, seed: int = 1) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("train_tiny", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trainer() -> Any:
    return loaded().Trainer("eager")


@contextmanager
def automatic(session: pw.TraceSession, train: Any) -> Iterator[None]:
    with record_torch(session, model=train.model, optimizer=train.optimizer), session.begin_measurement("region"):
        yield


def test_operations_nest_as_they_ran(session, stored) -> None:
    net = model()
    with session, record_torch(session, model=net), session.begin_measurement("region"):
        net(torch.ones(3, 8))
    with stored() as store:
        assert status(store) == "valid"
        parents = dict(rows(store, "SELECT c.name, p.name FROM spans AS c JOIN spans AS p ON p.id = c.parent_id"))
        assert parents["aten::linear"] == "region"
        assert parents["aten::addmm"] == "aten::linear"
        assert parents["region"] == "t::update"
        # Inputs of 3 x 8, 16 x 8 and 16 floats; the profiler keeps no output.
        query = "SELECT len(inputs), input_dense_bytes, output, shape FROM ops WHERE op_name = 'aten::linear'"
        assert rows(store, query + " ORDER BY seq LIMIT 1") == [(3, 672, None, None)]


def test_storages_have_the_category_of_their_use(session, stored) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    with session, record_torch(session, model=net, optimizer=optimizer), session.begin_measurement("region"):
        loss = net(torch.ones(3, 8)).sum()
        loss.backward()
        optimizer.step()
    with stored() as store:
        assert status(store) == "valid"
        query = "SELECT category, sum(bytes)::BIGINT FROM memory_events WHERE action = 'alloc' GROUP BY category"
        found = dict(rows(store, query))
        # 16 x 8 + 16 + 4 x 16 + 4 floats of parameters, as many of momentum; their gradients and those in between.
        assert (found["parameter"], found["optimizer"]) == (848, 848)
        assert found["gradient"] >= 848
        # The hidden layer before and after ReLU, the output, the loss: what autograd's operations left behind.
        assert dict(rows(store, ACTIVATIONS)) == {"aten::addmm": 2, "aten::clamp_min": 1, "aten::sum": 1}


def test_live_bytes_are_those_of_the_profilers_own_timeline(session, stored, monkeypatch) -> None:
    """Beside what was there before, of which both know a different part, every byte is the same at every time."""
    kept: list[Any] = []
    profile = torch.profiler.profile
    monkeypatch.setattr(torch.profiler, "profile", lambda **how: kept.append(profile(**how)) or kept[0])
    train = trainer()
    train.step()
    with session, automatic(session, train):
        train.step()
    kept[0].with_stack = True  # Asked for, and used for names of modules alone.
    timeline = [event for event in kept[0]._memory_profile().timeline if event[1].name in ("CREATE", "DESTROY")]
    changes = [size if action.name == "CREATE" else -size for _, action, _, size in timeline]
    with stored() as store:
        events = rows(
            store,
            "SELECT action, bytes FROM memory_events WHERE storage_id LIKE 'a%' ORDER BY timestamp_ns, seq",
        )
        own = [size if action == "alloc" else -size for action, size in events]
        assert [sum(own[: n + 1]) for n in range(len(own))] == [sum(changes[: n + 1]) for n in range(len(changes))]
        assert len(own) > 500


def test_garbage_that_is_collected_while_the_profiler_starts_was_there_before(session, stored, monkeypatch) -> None:
    garbage, start = [torch.ones(700)], torch.profiler.profile.__enter__
    monkeypatch.setattr(torch.profiler.profile, "__enter__", lambda self: garbage.clear() or start(self))
    with session, record_torch(session), session.begin_measurement("region"):
        torch.ones(4)
    with stored() as store:
        assert status(store) == "valid"
        query = "SELECT end_timestamp_ns >= start_timestamp_ns FROM storage_lifetimes WHERE bytes = 2800"
        assert rows(store, query) == [(True,)]


def test_a_storage_from_before_is_freed_when_its_last_owner_lets_go(session, stored) -> None:
    kept, dropped = torch.ones(1000), [torch.ones(500)]
    with session, record_torch(session), session.begin_measurement("region"), session.begin_span("inner"):
        dropped.clear()
    del kept
    with stored() as store:
        query = (
            "SELECT l.bytes, l.end_timestamp_ns IS NULL, any_value(s.name) FROM storage_lifetimes AS l"
            " JOIN memory_events AS m USING (storage_id) LEFT JOIN spans AS s ON s.id = m.span_id AND m.action = 'free'"
            " WHERE l.bytes IN (4000, 2000) GROUP BY 1, 2 ORDER BY 1"
        )
        assert rows(store, query) == [(2000, False, "inner"), (4000, True, None)]


def test_the_hottest_activations_are_those_of_the_raw_events(session, stored, monkeypatch) -> None:
    kept: list[Any] = []
    profile = torch.profiler.profile
    monkeypatch.setattr(torch.profiler, "profile", lambda **options: kept.append(profile(**options)) or kept[-1])
    train = trainer()
    with session, automatic(session, train):
        train.step()
    sizes: dict[str, list[int]] = {}
    todo = [(root, "") for root in kept[0].profiler.kineto_results.experimental_event_tree()]
    while todo:
        event, op = todo.pop()
        if event.typed[0].name == "Allocation" and event.typed[1].alloc_size > 0:
            sizes.setdefault(op, []).append(event.typed[1].alloc_size)
        todo += [(child, event.name) for child in event.children]
    with stored() as store:
        hot = rows(
            store,
            "SELECT name, logical_allocated_bytes FROM activation_hotspots WHERE logical_storage_count = 1"
            " ORDER BY logical_allocated_rank",
        )
        assert len(hot) > 20
        assert [size for _, size in hot] == sorted((size for _, size in hot), reverse=True)
        assert all(size in sizes[name] for name, size in hot)
        spans = rows(
            store,
            "SELECT count(*) FROM ops JOIN spans ON spans.id = ops.span_id WHERE spans.span_kind <> 'op'",
        )
        assert spans == [(0,)]


def test_the_cpu_has_no_device_time_and_says_so(session, stored) -> None:
    with session, record_torch(session), session.begin_measurement("region"):
        torch.ones(4) + 1
    with stored() as store:
        assert rows(store, "FROM device_clock_busy") == []
        ((level, reason),) = rows(store, "SELECT level, reason FROM capabilities WHERE field = 'nested_device_time'")
        assert (level, reason) == ("unavailable", "the producer neither declared nor recorded device timing")


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu")])
def test_modes_of_torch_change_nothing_for_the_capture(session, stored, mode) -> None:
    net = model()
    region = session.begin_measurement
    with session, record_torch(session, model=net), region("region"), mode():  # noqa: SIM117
        with session.begin_step_span("forward", pw.ExecutionStep.FORWARD):
            net(torch.ones(3, 8))
    with stored() as store:
        assert status(store) == "valid"
        assert sum(count for _, count in rows(store, ACTIVATIONS)) >= 3


def test_without_a_graph_or_a_step_nothing_is_called_an_activation(session, stored) -> None:
    net = model()
    with session, record_torch(session, model=net), session.begin_measurement("region"), torch.no_grad():
        net(torch.ones(3, 8))
    with stored() as store:
        assert rows(store, ACTIVATIONS) == []


def test_work_that_a_checkpoint_does_again_lies_under_its_backward_function(session, stored) -> None:
    from torch.utils.checkpoint import checkpoint

    net = model()
    with session, record_torch(session, model=net), session.begin_measurement("region"):
        checkpoint(net, torch.ones(3, 8, requires_grad=True), use_reentrant=True).sum().backward()
    with stored() as store:
        assert status(store) == "valid"
        again = rows(
            store,
            "WITH RECURSIVE above AS (SELECT id, name, parent_id FROM spans WHERE name = 'aten::linear'"
            " UNION ALL SELECT above.id, spans.name, spans.parent_id FROM above JOIN spans ON spans.id ="
            " above.parent_id) SELECT count(DISTINCT id) FROM above WHERE name = 'CheckpointFunctionBackward'",
        )
        assert again == [(2,)]


def test_gradients_that_accumulate_over_steps_stay_gradients(session, stored) -> None:
    net = model()
    net(torch.ones(3, 8)).sum().backward()
    with session, record_torch(session, model=net), session.begin_measurement("region"):
        for _ in range(2):
            net(torch.ones(3, 8)).sum().backward()
    with stored() as store:
        before = "category = 'gradient' AND action = 'alloc' AND op_name IS NULL"
        assert rows(store, f"SELECT sum(bytes)::BIGINT FROM memory_events WHERE {before}") == [(848,)]


def test_an_exception_passes_on_and_what_ran_before_it_is_kept(session, stored) -> None:
    def diverge() -> None:
        with session, record_torch(session), session.begin_measurement("region"):
            torch.ones(4) + 1
            raise ArithmeticError("diverged")

    with pytest.raises(ArithmeticError, match="diverged"):
        diverge()
    with stored() as store:
        assert rows(store, "SELECT outcome, failure_reason FROM runs") == [("failed", "ArithmeticError: diverged")]
        assert rows(store, "SELECT count(*) > 0 FROM ops") == [(True,)]


def test_an_interrupt_passes_through_and_leaves_no_profiler_behind(session) -> None:
    with pytest.raises(KeyboardInterrupt), session, record_torch(session):
        raise KeyboardInterrupt
    assert not torch._C._autograd._profiler_enabled()


def test_a_profiler_that_runs_already_is_refused(session) -> None:
    other = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with session, other, pytest.raises(pw.ContractError, match="running already"), record_torch(session):
        pass


@pytest.mark.parametrize("depth", ["profiler", "dispatch"])
def test_a_second_capture_in_a_session_is_refused(session, stored, depth: str) -> None:
    with session, session.begin_measurement("region"):
        with record_torch(session, depth=depth):
            torch.ones(4)
        with pytest.raises(pw.ContractError, match="automatic capture already"), record_torch(session, depth=depth):
            pass
    assert not torch._C._autograd._profiler_enabled()
    with stored() as store:
        assert status(store) == "valid"


def test_an_unknown_depth_is_refused(session) -> None:
    with session, pytest.raises(pw.ContractError, match="found depth 'deep'"), record_torch(session, depth="deep"):
        pass


def test_a_fault_of_the_conversion_reaches_the_session_and_not_the_program(session, monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise LookupError("another version")

    monkeypatch.setattr(torch_record, "HostClock", broken)
    region = session.begin_measurement
    with pytest.warns(pw.RecordingWarning, match="not be read") as told, record_torch(session), region("region"):
        torch.ones(4)
    assert len(told) == 1
    with pytest.raises(pw.RecordingError, match="another version"):
        session.finish()
    session.finish_failed("the profiler")


def test_a_fork_inside_the_block_records_nothing(session, stored) -> None:
    with session, record_torch(session), session.begin_measurement("region"):
        torch.ones(4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    with stored() as store:
        assert status(store) == "valid"


def test_times_lie_inside_the_spans_that_they_ran_in(session, stored) -> None:
    train = trainer()
    with session, record_torch(session, model=train.model), session.begin_measurement("region"):
        train.step()
    with stored() as store:
        outside = (
            "SELECT c.name FROM spans AS c JOIN spans AS p ON p.id = c.parent_id"
            " WHERE c.start_ns < p.start_ns OR c.start_ns + c.duration_ns > p.start_ns + p.duration_ns"
        )
        assert rows(store, outside) == []
        assert rows(store, "SELECT code FROM health_issues WHERE severity = 'error'") == []


def test_the_depth_of_dispatch_sees_outputs_and_the_ends_of_storages(session, stored) -> None:
    net = model()
    deep = record_torch(session, depth="dispatch", model=net)
    with session, deep, session.begin_measurement("region"):
        with session.begin_step_span("forward", pw.ExecutionStep.FORWARD):
            loss = net(torch.ones(3, 8)).sum()
        with session.begin_step_span("backward", pw.ExecutionStep.BACKWARD):
            loss.backward()
        del loss
    with stored() as store:
        assert status(store) == "valid"
        assert rows(store, "SELECT shape FROM ops WHERE op_name = 'addmm' ORDER BY seq") == [([3, 16],), ([3, 4],)]
        query = "SELECT category, sum(bytes)::BIGINT FROM memory_events WHERE action = 'alloc' GROUP BY 1 ORDER BY 1"
        found = dict(rows(store, query))
        assert found["parameter"] == 848
        assert found["gradient"] >= 848
        ended = "SELECT count(*) FROM storage_lifetimes WHERE category = 'activation' AND end_timestamp_ns IS NULL"
        assert rows(store, ended) == [(0,)]


def test_what_torch_compile_runs_is_recorded(session, stored) -> None:
    net = model()
    compiled = torch.compile(net, backend="aot_eager")
    compiled(torch.ones(3, 8)).sum().backward()
    with session, record_torch(session, model=net), session.begin_measurement("region"):
        compiled(torch.ones(3, 8)).sum().backward()
    with stored() as store:
        assert status(store) == "valid"
        assert rows(store, "SELECT count(*) FROM ops WHERE op_name = 'aten::addmm'")[0][0] >= 2


class Work:
    """A device event as the profiler gives it."""

    def __init__(self, kind: Any, start: int, duration: int, stream: int, link: int) -> None:
        self._values = {"device_type": kind, "start_ns": start, "duration_ns": duration, "device_resource_id": stream}
        self._values |= {"device_index": 1, "linked_correlation_id": link, "correlation_id": 40 + link, "name": "k"}

    def __getattr__(self, name: str) -> Callable[[], Any]:
        return lambda: self._values[name]


def test_device_work_is_on_the_profilers_clock_under_what_launched_it(session, stored) -> None:
    kinds = torch._C._autograd.DeviceType
    events = [Work(kinds.CUDA, 1010, 25, 7, 5), Work(kinds.CUDA, 1020, 5, 8, 6), Work(kinds.CPU, 1000, 9, 0, 0)]
    with session, session.begin_measurement("region") as region:
        writer = RowWriter(session, session.reserve_seq(10))
        _write_device_work(writer, Walked(spans_of={5: region.id}), events, 1000, session.root_id)
        writer.flush()
    with stored() as store:
        query = "SELECT device, stream_id, start_ns, duration_ns, correlation_id, span_id FROM device_intervals"
        assert rows(store, query + " ORDER BY start_ns") == [
            ("cuda:1", "7", 10, 25, "45", region.id),
            ("cuda:1", "8", 20, 5, "46", session.root_id),
        ]
        assert rows(store, "SELECT clock_id, busy_ns FROM device_clock_busy") == [("torch-profiler", 25)]


def test_a_clock_keeps_order_and_meets_both_marks() -> None:
    from planewise.recorder.torch_clock import HostClock, Reading

    first, last = [Reading(100, 140), Reading(200, 210)], [Reading(5_000_000, 5_000_010)]
    clock = HostClock(100, first, last, [7_000, 7_100, 5_006_900])
    assert (clock.host_ns(7_100), clock.host_ns(5_006_900), clock.uncertainty_ns) == (105, 4_999_905, 5)
    times = [clock.host_ns(at) for at in range(7_100, 5_006_900, 997)]
    assert times == sorted(times)


def test_the_example_adds_less_than_twenty_lines_to_the_plain_loop(stored, tmp_path) -> None:
    example = loaded()
    plain, auto = (
        len(inspect.getsource(function).splitlines()) for function in (example.plain_loop, example.auto_loop)
    )
    assert auto - plain <= 20
    example.auto_loop("eager", "auto-01", tmp_path / "capture")
    with stored() as store:
        assert status(store) == "valid"
        assert rows(store, "SELECT peak_live_bytes > 0 FROM live_bytes_peak WHERE device IS NULL") == [(True,)]
        assert rows(store, "SELECT count(*) > 50 FROM activation_hotspots") == [(True,)]
