"""Hooks, events, samplers and ranks: the parts of a capture that a user adds where needed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the torch extra is not installed")

import planewise as pw  # noqa: E402
from planewise.pipeline.ingest_stage import ingest_sources  # noqa: E402
from planewise.pipeline.store import Store  # noqa: E402
from planewise.pipeline.stores import open_store  # noqa: E402
from planewise.recorder.torch_gradients import GradientCapturePlan  # noqa: E402

RANK = """
import sys, torch.distributed as dist, planewise as pw
dist.init_process_group("gloo")
run = pw.ProfileRun.from_torchrun("job::update", 3, "cpu")
with pw.TraceSession.open(f"{sys.argv[1]}/rank-{dist.get_rank()}", run) as session:
    with session.begin_measurement("region"), session.begin_step_span("step", pw.ExecutionStep.FORWARD):
        dist.barrier()
dist.destroy_process_group()
"""


@pytest.fixture
def session(tmp_path: Path) -> pw.TraceSession:
    return pw.TraceSession.open(tmp_path / "capture", pw.ProfileRun.training("t::u", 1, "cpu"), run_id="r")


def asked(folder: Path, query: str) -> list[tuple[Any, ...]]:
    store = Store.open(folder.parent / "store", create=True)
    results = ingest_sources(store, [folder])
    assert {result.status for result in results} <= {"ingested", "unchanged"}, results
    with open_store(store.path) as opened:
        return opened.sql(query).fetchall()


class Net(torch.nn.Module):
    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        self.fails = fails

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        if self.fails:
            raise ArithmeticError("diverged")
        return x


def hooks(model: torch.nn.Module) -> list[Any]:
    tables = ("_forward_pre_hooks", "_forward_hooks", "_forward_hooks_always_called", "_backward_hooks")
    return [dict(getattr(module, table)) for module in model.modules() for table in tables]


@pytest.mark.parametrize("fails", [False, True])
def test_modules_have_spans_and_their_hooks_are_as_before(session, fails: bool) -> None:
    net, calls = Net(fails=fails), []
    net.inner.register_forward_hook(lambda *_: calls.append(1))
    before = hooks(net)
    with session, session.begin_measurement("region"):
        try:
            with pw.module_spans(net, session):
                net(torch.ones(1, 4))
        except ArithmeticError:
            assert fails
    assert hooks(net) == before
    assert calls == [1]
    query = (
        "SELECT c.name, p.name, c.span_kind, c.duration_ns IS NULL FROM spans AS c"
        " JOIN spans AS p ON p.id = c.parent_id WHERE c.span_kind = 'module' ORDER BY c.seq"
    )
    assert asked(session.path, query) == [
        ("Net", "region", "module", False),
        ("inner", "Net", "module", False),
        ("inner.0", "inner", "module", False),
        ("inner.1", "inner", "module", False),
    ]


def test_only_selected_modules_have_spans(session) -> None:
    net = Net()
    with session, pw.module_spans(net, session, select=lambda name: name == "inner.0"):
        net(torch.ones(1, 4))
    assert asked(session.path, "SELECT name FROM spans WHERE span_kind = 'module'") == [("inner.0",)]


class Event:
    """A stand-in for a CUDA event: it happens when it is recorded, on a device clock in milliseconds."""

    now = 0.0

    def record(self, _stream: Any) -> None:
        self.at = Event.now

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: Event) -> float:
        return other.at - self.at


def test_pairs_of_events_are_intervals_on_a_clock_of_their_own(session) -> None:
    timer = pw.CudaEventTimer(session, events=Event, streams=lambda device: f"stream-{device}")
    Event.now = 5.0
    with session, session.begin_measurement("region") as region:
        for name, took in (("first", 0.25), ("empty", 0.0), ("second", 1.5)):
            with timer.interval(name):
                Event.now += took
        assert timer.resolve() == 2
    assert timer.empty == 1
    query = (
        "SELECT name, span_id, device, stream_id, clock_id, start_ns, duration_ns FROM device_intervals ORDER BY seq"
    )
    where = (region.id, "cuda:0", "stream-0", "cuda-event:0")
    assert asked(session.path, query) == [("first", *where, 0, 250_000), ("second", *where, 250_000, 1_500_000)]


def test_an_event_without_a_time_is_a_fault_that_names_itself(session) -> None:
    class Broken(Event):
        def elapsed_time(self, other: Event) -> float:
            raise RuntimeError("device lost")

    timer = pw.CudaEventTimer(session, events=Broken, streams=lambda device: 7)
    with session:
        with timer.interval():
            pass
        with pytest.raises(pw.RecordingError, match="device lost"):
            timer.resolve()


class Nvml:
    """A stand-in for pynvml: one GPU whose third look fails."""

    def __init__(self) -> None:
        self.looks = 0

    def nvmlInit(self) -> None:
        pass

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return number

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        self.looks += 1
        if self.looks == 3:
            raise OSError("GPU is lost")
        return SimpleNamespace(used=10 * self.looks, free=90, total=128)


def test_samples_are_what_the_driver_says_and_end_where_it_fails(session) -> None:
    nvml = Nvml()
    with session, pw.NvmlSampler(session, interval_s=60, library=nvml) as sampler:
        assert sampler.sample() == 1
        assert sampler.sample() == 0
    assert sampler.unavailable == "cuda:0: GPU is lost"
    query = "SELECT device, used_bytes, free_bytes, reserved_bytes, capacity_bytes FROM device_memory ORDER BY seq"
    assert asked(session.path, query) == [("cuda:0", 10, 90, None, 128), ("cuda:0", 20, 90, None, 128)]


def test_a_sampler_samples_on_its_own_thread_until_it_is_closed(session) -> None:
    cuda = SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 1, memory_reserved=lambda n: 8, memory_allocated=lambda n: 4
    )
    with session, pw.TorchAllocatorSampler(session, interval_s=0.01, cuda=cuda):
        time.sleep(0.3)
    query = "SELECT count(*) > 5, any_value(used_bytes), any_value(reserved_bytes), any_value(free_bytes)"
    assert asked(session.path, f"{query} FROM device_memory") == [(True, 4, 8, None)]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("kind", ["NvmlSampler", "TorchAllocatorSampler"])
def test_without_a_device_nothing_is_recorded_and_the_reason_is_said(session, kind: str) -> None:
    with session, getattr(pw, kind)(session) as sampler:
        assert sampler.sample() == 0
    assert sampler.unavailable
    assert asked(session.path, "FROM device_memory") == []


def test_two_ranks_of_torchrun_are_two_runs_of_one_job(tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text(RANK)
    captures = tmp_path / "captures"
    captures.mkdir()
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--rdzv-id=job7"]
    command += ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", str(script), str(captures)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    query = "SELECT correlation_id, tags['rank'], tags['world_size'], split_part(run_id, '-', 2) FROM runs ORDER BY 2"
    job = "job::update/update-3@job7"
    assert asked(captures, query) == [(job, "0", "2", "rank0"), (job, "1", "2", "rank1")]
    assert asked(captures, "SELECT rank FROM _rank_runs ORDER BY 1") == [(0,), (1,)]


@pytest.mark.parametrize(
    ("environ", "found"),
    [({}, "RANK is not set"), ({"RANK": "0", "LOCAL_RANK": "x", "WORLD_SIZE": "1"}, "found LOCAL_RANK='x'")],
)
def test_outside_of_torchrun_there_is_no_rank(environ: dict[str, str], found: str) -> None:
    with pytest.raises(pw.ContractError, match=found):
        pw.ProfileRun.from_torchrun("t::u", 1, environ=environ)


@pytest.mark.parametrize("wrap", ["module.{}", "_orig_mod.{}", "module._orig_mod.{}", "_fsdp_wrapped_module.{}"])
def test_wrapped_models_have_the_manifest_of_the_plain_one(wrap: str) -> None:
    def plan(form: str) -> str:
        named = [(form.format(name), parameter) for name, parameter in Net().named_parameters()]
        families = [pw.GradientFamilyContract.active("all", 2)]
        return GradientCapturePlan.from_named_parameters(
            "m", named, lambda key: "all", families
        ).contract.manifest_sha256

    assert plan(wrap) == plan("{}")


def test_gradients_of_every_state_are_told_apart(session) -> None:
    values = {
        "a_missing": None,
        "b_zero": torch.tensor([-0.0, 0.0]),
        "c_nan": torch.tensor([float("nan"), 1.0]),
        "d_present": torch.tensor([3.0, 4.0]),
        "e_sparse": torch.sparse_coo_tensor([[0, 0]], [3.0, 4.0], (2,), check_invariants=True),
    }
    named = []
    for name, gradient in values.items():
        parameter = torch.nn.Parameter(torch.ones(2))
        parameter.grad = gradient
        named.append((name, parameter))
    families = [pw.GradientFamilyContract.active("all", 1)]
    plan = GradientCapturePlan.from_named_parameters("m", named, lambda key: "all", families)
    with session:
        plan.record(session)
    assert asked(session.path, "SELECT key, state, norm FROM gradients ORDER BY seq") == [
        ("a_missing", "missing", None),
        ("b_zero", "zero", 0.0),
        ("c_nan", "non_finite", None),
        ("d_present", "present", 5.0),
        ("e_sparse", "present", 7.0),
    ]


def test_a_timed_region_lies_between_two_waits_for_its_device(session, monkeypatch) -> None:
    heard: list[str] = []
    module = SimpleNamespace(synchronize=lambda device: heard.append(f"wait {device}"))
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    with session, pw.timed_region(session, "region", device="cuda:0") as region:
        heard.append("work")
        assert region.is_open
    run = pw.ProfileRun.training("t::u", 1, "cpu")
    with pw.TraceSession.open(session.path.parent / "cpu", run) as other, pw.timed_region(other, "region"):
        heard.append("on the CPU")
    assert heard == ["wait cuda:0", "work", "wait cuda:0", "on the CPU"]
