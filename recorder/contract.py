"""What a producer asserts about a capture, and what identifies it for comparison (protocol 2.2, 2.3, guide 2, 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from .errors import ContractError
from .gradient_contract import GradientContract
from .planes import COVERAGE_FIELDS
from .values import filled_text, is_blank, member, positive, text
from .vocabulary import CoverageLevel, MeasurementScope

_LABEL_FIELDS = ("required_semantic_labels", "gpu_expected_semantic_labels", "cpu_only_semantic_labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureContract:
    """A producer's assertion about the *whole* measured region (guide 2).

    ``complete`` means everything in scope is represented, ``partial`` a deliberate sample, ``none`` not attempted;
    observed events never prove completeness. Labels must each name exactly one span of a successful capture. The two
    class lists are both empty (then every required label is expected on the GPU) or partition the required labels.
    """

    measurement_scope: MeasurementScope = MeasurementScope.UNKNOWN
    operations: CoverageLevel = CoverageLevel.NONE
    activations: CoverageLevel = CoverageLevel.NONE
    tensors: CoverageLevel = CoverageLevel.NONE
    gradients: CoverageLevel = CoverageLevel.NONE
    logical_memory: CoverageLevel = CoverageLevel.NONE
    physical_memory: CoverageLevel = CoverageLevel.NONE
    device_timing: CoverageLevel = CoverageLevel.NONE
    gradient_contract: GradientContract | None = None
    required_semantic_labels: tuple[str, ...] = ()
    gpu_expected_semantic_labels: tuple[str, ...] = ()
    cpu_only_semantic_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = (
            object.__setattr__
        )  # A frozen dataclass normalises itself this way: spellings become members, lists tuples.
        put(self, "measurement_scope", member(MeasurementScope, self.measurement_scope, "measurement_scope"))
        for name in COVERAGE_FIELDS:
            put(self, name, member(CoverageLevel, getattr(self, name), name))
        for name in _LABEL_FIELDS:
            put(self, name, _texts(getattr(self, name), name))

    def validate(self) -> None:
        """Check protocol 2.2 in its order; raises :class:`ContractError` for the first broken rule."""
        _check_labels(self.required_semantic_labels, "required_semantic_labels")
        if self.gpu_expected_semantic_labels or self.cpu_only_semantic_labels:
            self._check_classes()
        self._check_gradients()
        self._check_activations()

    def _check_classes(self) -> None:
        required = set(self.required_semantic_labels)
        seen: set[str] = set()
        for name in _LABEL_FIELDS[1:]:
            labels = getattr(self, name)
            _check_labels(labels, name)
            for label in labels:
                if label not in required:
                    raise _refused("label_not_required", name, f"{label!r} is no required label")
                if label in seen:
                    raise _refused("label_in_both_classes", name, f"{label!r} is in both class lists")
            seen.update(labels)
        missing = [label for label in self.required_semantic_labels if label not in seen]
        if missing:
            raise _refused("labels_not_partitioned", _LABEL_FIELDS[0], f"no class list holds {', '.join(missing)}")

    def _check_gradients(self) -> None:
        complete = self.gradients is CoverageLevel.COMPLETE
        if complete and self.gradient_contract is None:
            raise _refused("gradient_contract_missing", "gradients", "complete needs a gradient_contract")
        if not complete and self.gradient_contract is not None:
            raise _refused(
                "gradient_contract_without_complete_coverage",
                "gradients",
                f"is {self.gradients}, a contract needs complete",
            )
        if self.gradient_contract is not None:
            self.gradient_contract.validate()

    def _check_activations(self) -> None:
        if self.activations is not CoverageLevel.COMPLETE:
            return
        if self.operations is not CoverageLevel.COMPLETE:
            raise _refused(
                "activations_need_operations", "activations", f"complete, but operations is {self.operations}"
            )
        if self.tensors is CoverageLevel.NONE and self.logical_memory is CoverageLevel.NONE:
            raise _refused(
                "activations_need_links", "activations", "complete, but neither tensors nor logical_memory is declared"
            )

    def resolved_label_classes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(GPU-expected, CPU-only) labels; with both class lists empty every required label is GPU-expected."""
        if not self.gpu_expected_semantic_labels and not self.cpu_only_semantic_labels:
            return self.required_semantic_labels, ()
        return self.gpu_expected_semantic_labels, self.cpu_only_semantic_labels

    def to_json(self) -> dict[str, Any]:
        """The contract as a JSON object, absent members and empty class lists left out (protocol 2.2)."""
        value: dict[str, Any] = {"measurement_scope": self.measurement_scope.value}
        value |= {name: getattr(self, name).value for name in COVERAGE_FIELDS}
        if self.gradient_contract is not None:
            value["gradient_contract"] = self.gradient_contract.to_json()
        value["required_semantic_labels"] = list(self.required_semantic_labels)
        value |= {name: list(getattr(self, name)) for name in _LABEL_FIELDS[1:] if getattr(self, name)}
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CaptureContract:
        """Read what :meth:`to_json` wrote; raises :class:`ContractError` for unknown, missing or mistyped members."""
        _check_members(
            value,
            cls,
            required=("measurement_scope", "operations", "logical_memory", "physical_memory", "device_timing"),
        )
        arguments = dict(value)
        if arguments.get("gradient_contract") is not None:
            arguments["gradient_contract"] = GradientContract.from_json(arguments["gradient_contract"])
        return cls(**arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonIdentity:
    """What must be equal for two runs to be compared (protocol 2.3).

    ``implementation_id`` names the build and may differ between cohorts; ``pair_id`` pairs one run of each cohort and,
    once used, must be used by all. Both are None when not stated.
    """

    workload_id: str
    model_id: str
    config_id: str
    data_id: str
    seed_policy: str
    physical_batch: int
    accumulation_steps: int
    precision: str
    device_state: str
    implementation_id: str | None = None
    pair_id: str | None = None

    def validate(self) -> None:
        """Check protocol 2.3 in its order; raises :class:`ContractError` for the first broken rule."""
        for name in ("workload_id", "model_id", "config_id", "data_id", "seed_policy", "precision", "device_state"):
            filled_text(getattr(self, name), name)
        for name in ("implementation_id", "pair_id"):
            if getattr(self, name) is not None:
                filled_text(getattr(self, name), name)
        for name in ("physical_batch", "accumulation_steps"):
            positive(getattr(self, name), name)

    def to_json(self) -> dict[str, Any]:
        """The identity as a JSON object; absent members are left out."""
        value = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: item for name, item in value.items() if item is not None}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ComparisonIdentity:
        """Read what :meth:`to_json` wrote; raises :class:`ContractError` for unknown or missing members."""
        optional = ("implementation_id", "pair_id")
        _check_members(value, cls, required=tuple(f.name for f in fields(cls) if f.name not in optional))
        return cls(**value)


def _texts(value: Iterable[str], name: str) -> tuple[str, ...]:
    if isinstance(value, str):
        raise _refused("not_a_list", name, f"expected a list of labels, found the text {value!r}")
    return tuple(text(item, name) for item in value)


def _check_labels(labels: tuple[str, ...], name: str) -> None:
    seen: set[str] = set()
    for label in labels:
        if is_blank(label):
            raise _refused("label_blank", name, "a label is blank")
        if label in seen:
            raise _refused("label_repeated", name, f"{label!r} is repeated")
        seen.add(label)


def _check_members(value: Mapping[str, Any], kind: type[Any], required: tuple[str, ...]) -> None:
    known = {field.name for field in fields(kind)}
    unknown = [name for name in value if name not in known]
    missing = [name for name in required if name not in value]
    for code, names in (("unknown_member", unknown), ("missing_member", missing)):
        if names:
            raise ContractError(f"{code.replace('_', ' ')}: {', '.join(names)}", source=kind.__name__, code=code)


def _refused(code: str, position: str, message: str) -> ContractError:
    return ContractError(message, source="capture contract", position=position, code=code)
