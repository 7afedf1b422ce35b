"""One gradient manifest that both declares the exact contract and drives the recording (protocol 14.4, guide 7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from .gradient_contract import ExpectedGradient, GradientContract, GradientFamilyContract
from .session import TraceSession
from .vocabulary import GradientState


@dataclass(frozen=True, slots=True)
class GradientCapturePlan:
    """The parameters of one root in manifest order (ascending key), with the contract made of them."""

    root: str
    contract: GradientContract
    _parameters: tuple[torch.Tensor, ...]

    @classmethod
    def from_named_parameters(
        cls,
        root: str,
        named_parameters: Iterable[tuple[str, torch.Tensor]],
        assign_family: Callable[[str], str],
        families: Iterable[GradientFamilyContract],
    ) -> GradientCapturePlan:
        """Build the plan from the final parameter set, as ``module.named_parameters()`` gives it.

        Keys are those of the plain module: what DistributedDataParallel, FSDP, ``torch.compile`` and checkpoint
        wrappers put into names is left out, so that a wrapped run and a plain one have one manifest. Raises
        :class:`ContractError` for an empty set, a repeated key, or families that do not fit the manifest.
        """
        ordered = sorted(_plain(named_parameters), key=lambda item: item[0])
        expected = [ExpectedGradient(root, key, assign_family(key)) for key, _ in ordered]
        contract = GradientContract.new(expected, families)
        return cls(root, contract, tuple(parameter for _, parameter in ordered))

    def record(self, session: TraceSession) -> None:
        """Record exactly one gradient per manifest entry, from each parameter's ``grad``, after the backward pass.

        No ``grad`` is missing; a norm that is not finite is non_finite; 0 is zero; else present. Norms are L2, squared
        and summed in f32, and read back once per device. Of a sharded gradient it is the norm of this rank's shard.
        """
        norms = _norms([parameter.grad for parameter in self._parameters])
        for entry, norm in zip(self.contract.expected, norms, strict=True):
            session.record_gradient(entry.root, entry.key, *_state(norm))


_WRAPPERS = frozenset(("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_flat_param_wrapper"))


def _plain(named_parameters: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
    """Parameters under the names that they have in the plain module."""
    parts = [([p for p in name.split(".") if p not in _WRAPPERS], tensor) for name, tensor in named_parameters]
    while parts and all(len(path) > 1 and path[0] == "module" for path, _ in parts):
        parts = [(path[1:], tensor) for path, tensor in parts]
    return [(".".join(path), tensor) for path, tensor in parts]


def _norms(gradients: list[torch.Tensor | None]) -> list[float | None]:
    found: list[float | None] = [None] * len(gradients)
    by_device: dict[torch.device, list[tuple[int, torch.Tensor]]] = {}
    for index, gradient in enumerate(gradients):
        if gradient is not None:
            by_device.setdefault(gradient.device, []).append((index, _norm(gradient)))
    for pairs in by_device.values():
        values = torch.stack([norm for _, norm in pairs]).tolist()
        for (index, _), value in zip(pairs, values, strict=True):
            found[index] = value
    return found


def _norm(gradient: torch.Tensor) -> torch.Tensor:
    dense = gradient.detach()
    if hasattr(dense, "to_local"):
        dense = dense.to_local()
    if dense.is_sparse:
        dense = dense.coalesce().values()
    if dense.is_complex():
        dense = torch.view_as_real(dense)
    return dense.to(torch.float32).square().sum().sqrt()


def _state(norm: float | None) -> tuple[GradientState, float | None]:
    if norm is None:
        return GradientState.MISSING, None
    if not math.isfinite(norm):
        return GradientState.NON_FINITE, None
    if norm == 0:
        return GradientState.ZERO, 0.0
    return GradientState.PRESENT, norm
