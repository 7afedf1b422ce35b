"""Campaign manifests: what was planned, and which cohorts to compare (protocol 11.1 and our own form of it)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from ..recorder.errors import IncompatibleInput, InputRefused
from ..recorder.values import is_blank
from .bundle import is_safe_path
from .views import quote

FOREIGN_SCHEMA = "candle-graph/campaign/1"
"""Manifest of the trace protocol: unique capture steps, bundle paths only."""
OWN_SCHEMA = "planewise/campaign/1"
"""Our manifest: a step may be planned many times, a plan may name a run id, and cohorts may be declared."""

_CaptureStep = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_MSGSPEC_PATH = re.compile(r" - at `\$\.?(.*)`$")
_Document = TypeVar("_Document")


@dataclass(frozen=True)
class PlannedCapture:
    """One planned capture: its step, and either the bundle's path or the run id that a store knows it by."""

    capture_step: int
    bundle: str | None = None
    run_id: str | None = None


@dataclass(frozen=True)
class PlannedComparison:
    """One comparison of the campaign: its name, and one SQL predicate over the view ``runs`` per cohort.

    With ``every_implementation`` it stands for one comparison per other implementation (:mod:`.cohorts`).
    """

    name: str
    baseline: str
    candidate: str
    every_implementation: bool = False


@dataclass(frozen=True)
class Campaign:
    """A campaign as its manifest declares it; ``base_dir`` is the folder that bundle paths are relative to."""

    schema: str
    campaign_id: str
    entrypoint: str
    planned: tuple[PlannedCapture, ...]
    comparisons: tuple[PlannedComparison, ...]
    base_dir: Path


class _ForeignCapture(msgspec.Struct, forbid_unknown_fields=True):
    capture_step: _CaptureStep
    bundle: str


class _ForeignManifest(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    campaign_id: str
    entrypoint: str
    planned: list[_ForeignCapture]


class _Capture(msgspec.Struct, forbid_unknown_fields=True):
    capture_step: _CaptureStep
    bundle: str | msgspec.UnsetType = msgspec.UNSET
    run_id: str | msgspec.UnsetType = msgspec.UNSET


class _Cohort(msgspec.Struct, forbid_unknown_fields=True):
    implementation_id: str | msgspec.UnsetType = msgspec.UNSET
    where: str | msgspec.UnsetType = msgspec.UNSET


class _Candidate(_Cohort, forbid_unknown_fields=True):
    every_implementation: bool = False


class _Comparison(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    baseline: _Cohort
    candidate: _Candidate


class _OwnManifest(msgspec.Struct, forbid_unknown_fields=True):
    schema: str
    campaign_id: str
    entrypoint: str
    planned: list[_Capture]
    comparisons: list[_Comparison] = []


@dataclass(frozen=True)
class _Refuser:
    source: Path

    def __call__(self, position: str | None, message: str, code: str, remedy: str | None = None) -> InputRefused:
        return InputRefused(message, source=self.source, position=position, code=code, remedy=remedy)


def load_campaign(path: str | Path) -> Campaign:
    """Read a campaign manifest of either schema.

    The rules are checked in the order of protocol 11.1; the first that is broken is raised. A manifest of the trace
    protocol keeps that protocol's rules; in ours capture steps may repeat, and run ids must be unique like paths.

    Raises
    ------
    InputRefused
        The file cannot be read, is no JSON of its schema, or breaks a rule; the position names the member.
    IncompatibleInput
        The schema is neither of the two.
    """
    source = Path(path)
    refuse = _Refuser(source)
    value = _read(source, refuse)
    schema = value.get("schema") if isinstance(value, dict) else None
    if schema not in (FOREIGN_SCHEMA, OWN_SCHEMA):
        raise IncompatibleInput(
            f"found schema {schema!r}, this planewise knows {OWN_SCHEMA} and {FOREIGN_SCHEMA}",
            source=source,
            position="schema",
            remedy="give a campaign manifest",
        )
    if schema == FOREIGN_SCHEMA:
        foreign = _convert(value, _ForeignManifest, refuse)
        planned = [PlannedCapture(item.capture_step, bundle=item.bundle) for item in foreign.planned]
        comparisons: tuple[PlannedComparison, ...] = ()
        campaign_id, entrypoint = foreign.campaign_id, foreign.entrypoint
    else:
        own = _convert(value, _OwnManifest, refuse)
        planned = [_capture(index, item, refuse) for index, item in enumerate(own.planned)]
        campaign_id, entrypoint = own.campaign_id, own.entrypoint
        comparisons = tuple(_comparison(index, item, refuse) for index, item in enumerate(own.comparisons))
    _check_head(campaign_id, entrypoint, planned, refuse)
    _check_planned(planned, refuse, unique_steps=schema == FOREIGN_SCHEMA)
    _check_names(comparisons, refuse)
    return Campaign(schema, campaign_id, entrypoint, tuple(planned), comparisons, source.parent)


def _read(source: Path, refuse: _Refuser) -> Any:
    try:
        content = source.read_bytes()
    except OSError as error:
        raise refuse(None, f"cannot be read: {error.strerror or error}", "unreadable") from error
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise refuse(None, f"no valid JSON: {error}", "bad_json", "give a campaign manifest") from error


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {repeated!r} appears twice in one object")
    return value


def _convert(value: Any, kind: type[_Document], refuse: _Refuser) -> _Document:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _MSGSPEC_PATH.search(text)
        raise refuse(found.group(1) if found else None, _MSGSPEC_PATH.sub("", text), "bad_manifest") from error


def _capture(index: int, item: _Capture, refuse: _Refuser) -> PlannedCapture:
    bundle = None if item.bundle is msgspec.UNSET else item.bundle
    run_id = None if item.run_id is msgspec.UNSET else item.run_id
    if (bundle is None) == (run_id is None):
        raise refuse(f"planned[{index}]", "expected either bundle or run_id", "bad_manifest", "give one of them")
    return PlannedCapture(item.capture_step, bundle=bundle, run_id=run_id)


def _comparison(index: int, item: _Comparison, refuse: _Refuser) -> PlannedComparison:
    position = f"comparisons[{index}]"
    baseline = _predicate(f"{position}.baseline", item.baseline, refuse)
    if not item.candidate.every_implementation:
        return PlannedComparison(item.name, baseline, _predicate(f"{position}.candidate", item.candidate, refuse))
    if item.candidate.implementation_id is not msgspec.UNSET:
        message = "expected no implementation_id beside every_implementation"
        raise refuse(f"{position}.candidate", message, "bad_manifest", "give one of them; where may narrow either")
    where = "true" if item.candidate.where is msgspec.UNSET else item.candidate.where
    return PlannedComparison(item.name, baseline, where, every_implementation=True)


def _predicate(position: str, cohort: _Cohort, refuse: _Refuser) -> str:
    where = None if cohort.where is msgspec.UNSET else cohort.where
    implementation_id = None if cohort.implementation_id is msgspec.UNSET else cohort.implementation_id
    if (where is None) == (implementation_id is None):
        raise refuse(position, "expected either implementation_id or where", "bad_manifest", "give one of them")
    if where is not None:
        return where
    return f"comparison_identity.implementation_id = {quote(str(implementation_id))}"


def _check_head(campaign_id: str, entrypoint: str, planned: Iterable[PlannedCapture], refuse: _Refuser) -> None:
    for name, text in (("campaign_id", campaign_id), ("entrypoint", entrypoint)):
        if is_blank(text):
            raise refuse(name, "is blank; expected some text", f"blank_{name}")
    if not planned:
        raise refuse("planned", "is empty; expected at least one capture", "nothing_planned")


def _check_planned(planned: Iterable[PlannedCapture], refuse: _Refuser, *, unique_steps: bool) -> None:
    steps: set[int] = set()
    targets: set[tuple[str | None, str | None]] = set()
    for index, item in enumerate(planned):
        position = f"planned[{index}]"
        if unique_steps and item.capture_step in steps:
            raise refuse(f"{position}.capture_step", f"repeats step {item.capture_step}", "repeated_capture_step")
        if item.bundle is not None and not is_safe_path(item.bundle):
            raise refuse(
                f"{position}.bundle",
                f"found {item.bundle!r}, expected a relative path of ordinary names",
                "unsafe_path",
                "bundle paths are relative to the manifest's folder",
            )
        target = (item.bundle, item.run_id)
        if target in targets:
            name = "bundle" if item.run_id is None else "run_id"
            raise refuse(f"{position}.{name}", f"repeats {item.bundle or item.run_id!r}", f"repeated_{name}")
        steps.add(item.capture_step)
        targets.add(target)


def _check_names(comparisons: Iterable[PlannedComparison], refuse: _Refuser) -> None:
    names: set[str] = set()
    for index, comparison in enumerate(comparisons):
        position = f"comparisons[{index}].name"
        if is_blank(comparison.name):
            raise refuse(position, "is blank; expected some text", "blank_name")
        if comparison.name in names:
            raise refuse(position, f"repeats {comparison.name!r}", "repeated_name")
        names.add(comparison.name)
