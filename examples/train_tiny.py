"""Trains a tiny attention model on the CPU and records one step of it, in two implementations of the same mathematics.

``eager`` walks the attention heads and the batch one by one with plain operations; ``fused`` calls
``scaled_dot_product_attention`` and ``addmm``. Losses agree to rounding; times and storages do not.

    python examples/train_tiny.py --implementation eager --depth timing --run-id eager-01 --output captures/eager-01

A run answers one of two questions, never both. ``--depth timing`` records the measured region alone: nothing slows
the step, so it is declared production equivalent and may be compared. ``--depth profile`` records every ATen operation
of the region, backward and optimizer included, through a dispatch mode, each in a span of its own: operations and
activations are declared complete, and the scope is profiled work, because recording takes longer than the step.
Scratch memory inside kernels has no tensor and is not seen, so logical memory is declared partial.

``--auto`` records the same step without a call per operation: ``auto_loop`` is ``plain_loop`` and what a user adds.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.utils._python_dispatch import _disable_current_modes

from planewise import (
    CaptureContract,
    CaptureSelector,
    ComparisonIdentity,
    CoverageLevel,
    ExecutionStep,
    GradientFamilyContract,
    MeasurementScope,
    ProfileRun,
    TraceSession,
    record_torch,
    torch_contract,
)
from planewise.recorder.torch_helpers import (
    GradientCapturePlan,
    record_tensor_stats,
)

BATCH, LENGTH, WIDTH, HEADS = 4, 32, 32, 4
CAPTURE_STEP = 6
ENTRYPOINT = "examples::train_tiny"
REGION = f"train_tiny/update-{CAPTURE_STEP:06d}"
FORWARD, BACKWARD, OPTIMIZER = (f"{REGION}/{step.value}" for step in ExecutionStep)


class Block(torch.nn.Module):
    """One attention block with a small MLP and a frozen input scale."""

    def __init__(self, implementation: str) -> None:
        super().__init__()
        self.fused = implementation == "fused"
        self.scale = torch.nn.Parameter(torch.ones(WIDTH), requires_grad=False)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map (batch, length, width) to the same shape."""
        x = x * self.scale
        attended = self._fused_attention(x) if self.fused else self._eager_attention(x)
        return x + self._mlp(attended)

    def _eager_attention(self, x: torch.Tensor) -> torch.Tensor:
        size = WIDTH // HEADS
        rows = []
        for sample in x.unbind(0):
            q, k, v = self._linear(self.qkv, sample).chunk(3, dim=1)
            heads = []
            for begin in range(0, WIDTH, size):
                part = slice(begin, begin + size)
                scores = q[:, part] @ k[:, part].t() / math.sqrt(size)
                heads.append(torch.softmax(scores, dim=1) @ v[:, part])
            rows.append(torch.cat(heads, dim=1))
        return torch.stack(rows)

    def _fused_attention(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        return functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)

    def _mlp(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, WIDTH)
        if self.fused:
            hidden = torch.addmm(self.up.bias, flat, self.up.weight.t()).relu()
            return torch.addmm(self.down.bias, hidden, self.down.weight.t()).view_as(x)
        hidden = self._linear(self.up, flat).clamp(min=0)
        return self._linear(self.down, hidden).view_as(x)

    @staticmethod
    def _linear(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
        return x @ layer.weight.t() + layer.bias


class Trainer:
    """The model, its optimizer and its data, all from one seed."""

    def __init__(self, implementation: str) -> None:
        torch.manual_seed(42)
        self.model = Block(implementation)
        self.optimizer = torch.optim.SGD(
            [parameter for parameter in self.model.parameters() if parameter.requires_grad], lr=0.05, foreach=False
        )
        self.inputs = torch.randn(BATCH, LENGTH, WIDTH)
        self.targets = torch.randn(BATCH, LENGTH, WIDTH)

    def step(self) -> float:
        """One training step without a capture; returns the loss."""
        self.optimizer.zero_grad()
        loss = functional.mse_loss(self.model(self.inputs), self.targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def phased_step(self, session: TraceSession, slow: str | None) -> None:
        """The same step with a span for each of its parts; ``slow`` names a part that does needless work."""
        with session.begin_measurement(REGION):
            with session.begin_step_span(FORWARD, ExecutionStep.FORWARD):
                self.optimizer.zero_grad()
                loss = functional.mse_loss(self.model(self.inputs), self.targets)
                _waste(slow == "forward")
            with session.begin_step_span(BACKWARD, ExecutionStep.BACKWARD):
                loss.backward()
                _waste(slow == "backward")
            with session.begin_step_span(OPTIMIZER, ExecutionStep.OPTIMIZER):
                self.optimizer.step()
                _waste(slow == "optimizer")

    def gradient_plan(self) -> GradientCapturePlan:
        """Every parameter, in two families."""
        return GradientCapturePlan.from_named_parameters(
            "parameters",
            self.model.named_parameters(),
            lambda key: "frozen" if key == "scale" else "trained",
            [GradientFamilyContract.active("trained", 6), GradientFamilyContract.inactive("frozen")],
        )

    def timed_step(self, session: TraceSession) -> None:
        """The same step, and nothing but its outer wall time; the loss is read after the region."""
        with session.begin_measurement(REGION) as region:
            loss = self.step()
        session.record_scalar(region.id, "loss/total", loss)

    def profiled_step(self, session: TraceSession, plan: GradientCapturePlan, after_forward: Any) -> None:
        """The same step with everything recorded."""
        self.optimizer.zero_grad()
        deep = record_torch(session, depth="dispatch", model=self.model, optimizer=self.optimizer)
        with deep, session.begin_measurement(REGION) as region:
            with session.begin_step_span(FORWARD, ExecutionStep.FORWARD) as forward:
                output = self.model(self.inputs)
                loss = functional.mse_loss(output, self.targets)
                with _disable_current_modes():
                    record_tensor_stats(session, forward.id, "block/output", output)
            after_forward(session)
            with session.begin_step_span(BACKWARD, ExecutionStep.BACKWARD) as backward:
                loss.backward()
                with _disable_current_modes():
                    self._record_gradient_stats(session, backward.id)
                    plan.record(session)
            with session.begin_step_span(OPTIMIZER, ExecutionStep.OPTIMIZER):
                self.optimizer.step()
            with _disable_current_modes():
                session.record_scalar(region.id, "loss/total", loss.item())

    def _record_gradient_stats(self, session: TraceSession, span_id: Any) -> None:
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                record_tensor_stats(session, span_id, f"gradient/{name}", parameter.grad)


def _waste(wanted: bool) -> None:
    """A slowdown that nobody asked for, as a bad merge brings one."""
    if wanted:
        matrix = torch.randn(256, 256)
        for _ in range(20):
            matrix = torch.tanh(matrix @ matrix)


def timing_contract() -> CaptureContract:
    """Outer wall time of the step as it runs every day."""
    return CaptureContract(measurement_scope=MeasurementScope.PRODUCTION_EQUIVALENT)


def profile_contract(plan: GradientCapturePlan) -> CaptureContract:
    """Everything but kernel scratch, at a price that makes the timing its own."""
    return CaptureContract(
        measurement_scope=MeasurementScope.PROFILED_WORK,
        operations=CoverageLevel.COMPLETE,
        activations=CoverageLevel.COMPLETE,
        tensors=CoverageLevel.COMPLETE,
        gradients=CoverageLevel.COMPLETE,
        logical_memory=CoverageLevel.PARTIAL,
        gradient_contract=plan.contract,
        required_semantic_labels=(FORWARD, BACKWARD, OPTIMIZER),
        cpu_only_semantic_labels=(FORWARD, BACKWARD, OPTIMIZER),
    )


def planned_run(implementation: str, contract: CaptureContract) -> ProfileRun:
    """What the capture claims, and what it is comparable with."""
    identity = ComparisonIdentity(
        implementation_id=f"train_tiny:{implementation}",
        workload_id="train-tiny-step",
        model_id=f"attention-{WIDTH}x{HEADS}",
        config_id="default",
        data_id="randn-42",
        seed_policy="fixed-42",
        physical_batch=BATCH,
        accumulation_steps=1,
        precision="f32",
        device_state="one-thread",
    )
    run = ProfileRun.training(ENTRYPOINT, CAPTURE_STEP, "cpu").capture_contract(contract)
    return run.comparison_identity(identity).tag("torch", torch.__version__).tag("example", "train_tiny")


def capture(
    implementation: str,
    run_id: str,
    folder: Path,
    *,
    depth: str = "timing",
    fail: bool = False,
    kill: bool = False,
    slow: str | None = None,
) -> None:
    """Train up to the selected step and record it into a new folder; other steps write nothing."""
    trainer = Trainer(implementation)
    selector = CaptureSelector(CAPTURE_STEP)
    for invocation in range(1, CAPTURE_STEP + 1):
        if not selector.is_selected(invocation):
            trainer.step()
            continue
        plan = trainer.gradient_plan()
        contract = profile_contract(plan) if depth == "profile" else timing_contract()
        with TraceSession.open(folder, planned_run(implementation, contract), run_id=run_id) as session:
            try:
                if depth == "timing":
                    trainer.timed_step(session)
                elif depth == "phases":
                    trainer.phased_step(session, slow)
                else:
                    trainer.profiled_step(session, plan, _accident(fail=fail, kill=kill))
            except ArithmeticError as fault:
                session.finish_failed(str(fault))


def plain_loop(implementation: str) -> None:
    """A training loop as anybody writes it."""
    trainer = Trainer(implementation)
    for _ in range(CAPTURE_STEP):
        trainer.step()


def auto_loop(implementation: str, run_id: str, folder: Path) -> None:
    """The same loop, one step of it recorded by the profiler."""
    trainer = Trainer(implementation)
    selector = CaptureSelector(CAPTURE_STEP)
    run = planned_run(implementation, torch_contract())
    for invocation in range(1, CAPTURE_STEP + 1):
        if not selector.is_selected(invocation):
            trainer.step()
            continue
        with (
            TraceSession.open(folder, run, run_id=run_id) as session,
            record_torch(session, model=trainer.model, optimizer=trainer.optimizer),
            session.begin_measurement(REGION),
        ):
            trainer.step()


def _accident(*, fail: bool, kill: bool) -> Any:
    def after_forward(session: TraceSession) -> None:
        if kill:
            session.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if fail:
            raise ArithmeticError("the loss was declared diverged after the forward pass")

    return after_forward


def main() -> None:
    """Parse the command line and record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--implementation", choices=("eager", "fused"), default="eager")
    parser.add_argument("--depth", choices=("timing", "phases", "profile"), default="timing", help="what to record")
    parser.add_argument("--slow", choices=[step.value for step in ExecutionStep], help="part of --depth phases to slow")
    parser.add_argument("--run-id", required=True, help="identity of the capture; -01, -02, ... is added with --repeat")
    parser.add_argument("--output", type=Path, required=True, help="capture folder; with --repeat their common parent")
    parser.add_argument("--repeat", type=int, default=1, help="number of captures, each of a freshly trained model")
    parser.add_argument("--fail", action="store_true", help="end a profile capture as failed after its forward")
    parser.add_argument("--kill", action="store_true", help="SIGKILL this process after a profiled forward")
    parser.add_argument("--auto", action="store_true", help="record by the profiler, with no call per operation")
    options = parser.parse_args()
    if options.auto and (options.fail or options.kill):
        parser.error("--fail and --kill do not go with --auto")
    if (options.fail or options.kill) and options.depth != "profile":
        parser.error("--fail and --kill go with --depth profile")
    torch.set_num_threads(1)
    for number in range(1, options.repeat + 1):
        run_id = options.run_id if options.repeat == 1 else f"{options.run_id}-{number:02d}"
        folder = options.output if options.repeat == 1 else options.output / run_id
        if options.auto:
            auto_loop(options.implementation, run_id, folder)
            print(folder)
            continue
        capture(
            options.implementation,
            run_id,
            folder,
            depth=options.depth,
            fail=options.fail,
            kill=options.kill,
            slow=options.slow,
        )
        print(folder)


if __name__ == "__main__":
    main()
