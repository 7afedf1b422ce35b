"""Selects the invocation to capture and describes it (protocol 2.1, 14.1 and 14.2, guide 1)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from .contract import CaptureContract, ComparisonIdentity
from .errors import ContractError
from .values import count, filled_text, flag, member, positive, text
from .vocabulary import Phase, TimingMode


@dataclass(frozen=True, slots=True)
class CaptureSelector:
    """Chooses one invocation, counted from 1. Ask it before a session is opened, so that others write nothing."""

    selected: int

    def __post_init__(self) -> None:
        positive(self.selected, "selected")

    def is_selected(self, invocation: int) -> bool:
        """True for the chosen invocation alone."""
        return invocation == self.selected

    @property
    def selected_invocation(self) -> int:
        """The chosen invocation."""
        return self.selected


def _torchrun_number(variables: Mapping[str, str], name: str) -> int:
    found = variables.get(name)
    if found is None or not (found.isascii() and found.isdecimal()):
        raise ContractError(
            f"found {name}={found!r}, expected a number that torchrun sets"
            if found is not None
            else f"{name} is not set, so torchrun did not start this process",
            position=name,
            code="not_torchrun",
            remedy="start the program with torchrun, or plan it with ProfileRun.training",
        )
    return int(found)


@dataclass(frozen=True, slots=True)
class ProfileRun:
    """One planned capture. Immutable: every builder returns a new one; nothing is checked before a session opens."""

    entrypoint: str
    phase: Phase
    capture_step: int
    device: str
    correlation: str
    warmup_steps: int
    timing_mode: TimingMode = TimingMode.HOST
    region_device_synchronized: bool = False
    contract: CaptureContract = field(default_factory=CaptureContract)
    identity: ComparisonIdentity | None = None
    tags: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def training(cls, entrypoint: str, capture_step: int, device: str) -> ProfileRun:
        """A training step; correlation id ``<entrypoint>/update-<step>``, every step before it was warm-up."""
        return cls._planned(entrypoint, Phase.TRAIN, capture_step, device, "update")

    @classmethod
    def inference(cls, entrypoint: str, capture_step: int, device: str) -> ProfileRun:
        """An inference call; correlation id ``<entrypoint>/inference-<step>``, every call before it was warm-up."""
        return cls._planned(entrypoint, Phase.INFER, capture_step, device, "inference")

    @classmethod
    def from_torchrun(
        cls,
        entrypoint: str,
        capture_step: int,
        device: str | None = None,
        *,
        phase: Phase = Phase.TRAIN,
        environ: Mapping[str, str] | None = None,
    ) -> ProfileRun:
        """One rank's run of a job that ``torchrun`` started, planned alike on every rank.

        Rank, local rank and world size are tags. All ranks share one correlation id, which holds torchrun's job id
        where it gave one (``--rdzv-id``); each rank's session gets a run id of its own. The device is
        ``cuda:<local rank>`` unless said otherwise. Raises :class:`ContractError` outside of torchrun, or when what it
        set is no number.
        """
        variables = os.environ if environ is None else environ
        rank, local, size = (_torchrun_number(variables, name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
        plan = cls.training if phase is Phase.TRAIN else cls.inference
        run = plan(entrypoint, capture_step, f"cuda:{local}" if device is None else device)
        job = variables.get("TORCHELASTIC_RUN_ID", "none")
        if job != "none":
            run = run.correlation_id(f"{run.correlation}@{job}")
        return run.tag("rank", str(rank)).tag("local_rank", str(local)).tag("world_size", str(size))

    @classmethod
    def _planned(cls, entrypoint: str, phase: Phase, step: int, device: str, word: str) -> ProfileRun:
        return cls(entrypoint, phase, step, device, f"{entrypoint}/{word}-{step}", max(step - 1, 0))

    def tag(self, key: str, value: str) -> ProfileRun:
        """Add or replace a tag; tags describe and never affect comparability."""
        return replace(self, tags=MappingProxyType({**self.tags, key: value}))

    def correlation_id(self, value: str) -> ProfileRun:
        """Replace the id shared with NVTX labels and other artefacts."""
        return replace(self, correlation=value)

    def measured_region_device_synchronized(self) -> ProfileRun:
        """Assert that the device is synchronised right before and right after the measured region."""
        return replace(self, region_device_synchronized=True)

    def device_synchronized(self) -> ProfileRun:
        """Assert that *every* semantic span is bounded by device synchronisations."""
        return replace(self, region_device_synchronized=True, timing_mode=TimingMode.DEVICE_SYNCHRONIZED)

    def capture_contract(self, contract: CaptureContract) -> ProfileRun:
        """Replace the capture contract."""
        return replace(self, contract=contract)

    def comparison_identity(self, identity: ComparisonIdentity) -> ProfileRun:
        """Replace the comparison identity."""
        return replace(self, identity=identity)

    def validate(self) -> None:
        """Check run metadata (2.1), then identity, then contract (2.2); :class:`ContractError` for the first fault."""
        for name, value in (("correlation_id", self.correlation), ("entrypoint", self.entrypoint)):
            filled_text(value, name)
        member(Phase, self.phase, "phase")
        step = positive(self.capture_step, "capture_step")
        if count(self.warmup_steps, "warmup_steps") >= step:
            raise ContractError(
                f"found {self.warmup_steps}, expected fewer than capture_step {step}",
                position="warmup_steps",
                code="warmup_not_before_capture",
            )
        filled_text(self.device, "device")
        flag(self.region_device_synchronized, "measured_region_device_synchronized")
        member(TimingMode, self.timing_mode, "timing_mode")
        for key, value in self.tags.items():
            text(key, "tags")
            text(value, "tags")
        if self.identity is not None:
            self.identity.validate()
        self.contract.validate()

    def to_json(self, *, run_id: str, timestamp: str) -> dict[str, Any]:
        """Run metadata under the protocol's names (2.1), for the header of a capture."""
        value: dict[str, Any] = {
            "run_id": run_id,
            "correlation_id": self.correlation,
            "entrypoint": self.entrypoint,
            "phase": self.phase.value,
            "timestamp": timestamp,
            "capture_step": self.capture_step,
            "warmup_steps": self.warmup_steps,
            "device": self.device,
            "measured_region_device_synchronized": self.region_device_synchronized,
            "timing_mode": self.timing_mode.value,
            "capture_contract": self.contract.to_json(),
        }
        if self.identity is not None:
            value["comparison_identity"] = self.identity.to_json()
        return value | {"tags": dict(self.tags)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ProfileRun:
        """Read the run back from :meth:`to_json`; raises :class:`ContractError` for a missing or mistyped member."""
        try:
            identity = value.get("comparison_identity")
            return cls(
                text(value["entrypoint"], "entrypoint"),
                member(Phase, value["phase"], "phase"),
                count(value["capture_step"], "capture_step"),
                text(value["device"], "device"),
                text(value["correlation_id"], "correlation_id"),
                count(value["warmup_steps"], "warmup_steps"),
                member(TimingMode, value["timing_mode"], "timing_mode"),
                flag(value.get("measured_region_device_synchronized", False), "measured_region_device_synchronized"),
                CaptureContract.from_json(value["capture_contract"]),
                None if identity is None else ComparisonIdentity.from_json(identity),
                MappingProxyType(dict(value["tags"])),
            )
        except KeyError as fault:
            raise ContractError(f"missing member {fault}", source="run metadata", code="missing_member") from fault
