"""The exact gradient manifest of a capture and what its parameter families must show (protocol 2.4, guide 7)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import ContractError
from .values import count, is_blank, member, text
from .vocabulary import GradientExpectation

_DOMAIN = b"candle-graph/gradient-manifest/1\0"


@dataclass(frozen=True, slots=True)
class ExpectedGradient:
    """One parameter whose gradient must be recorded exactly once."""

    root: str
    key: str
    family: str


@dataclass(frozen=True, slots=True)
class GradientFamilyContract:
    """What one parameter family must show; ``min_present`` counts members with a finite gradient above zero."""

    family: str
    expectation: GradientExpectation
    min_present: int

    @classmethod
    def active(cls, family: str, min_present: int) -> GradientFamilyContract:
        """At least ``min_present`` members must be present."""
        return cls(family, GradientExpectation.ACTIVE, min_present)

    @classmethod
    def inactive(cls, family: str) -> GradientFamilyContract:
        """Every member must be explicitly missing."""
        return cls(family, GradientExpectation.INACTIVE, 0)

    @classmethod
    def data_conditional(cls, family: str, min_present: int) -> GradientFamilyContract:
        """All members may be absent; once one is present, ``min_present`` must be."""
        return cls(family, GradientExpectation.DATA_CONDITIONAL, min_present)


def manifest_sha256(expected: Iterable[ExpectedGradient]) -> str:
    """``sha256:`` and 64 hex digits over the entries in their order; families' expectations are not hashed."""
    digest = hashlib.sha256(_DOMAIN)
    for entry in expected:
        for part in (entry.root, entry.key, entry.family):
            encoded = text(part, "expected").encode()
            digest.update(len(encoded).to_bytes(8, "little"))
            digest.update(encoded)
    return f"sha256:{digest.hexdigest()}"


@dataclass(frozen=True, slots=True)
class GradientContract:
    """The ordered gradient manifest, its digest, and one record per family.

    Build it with :meth:`new`, which computes the digest. The order of ``expected`` matters: it is hashed, and events
    are recorded in it.
    """

    manifest_sha256: str
    expected: tuple[ExpectedGradient, ...]
    families: tuple[GradientFamilyContract, ...]

    @classmethod
    def new(cls, expected: Iterable[ExpectedGradient], families: Iterable[GradientFamilyContract]) -> GradientContract:
        """Build and validate a contract; raises :class:`ContractError` for the first rule of 2.4 it breaks."""
        entries = tuple(expected)
        contract = cls(manifest_sha256(entries), entries, tuple(families))
        contract.validate()
        return contract

    def validate(self) -> None:
        """Check the rules of protocol 2.4 in their order; raises :class:`ContractError` for the first broken one."""
        if not self.expected:
            raise _refused("gradient_manifest_empty", "no expected gradient; expected at least one")
        if not self.families:
            raise _refused("gradient_families_empty", "no family; expected at least one")
        found = manifest_sha256(self.expected)
        if found != self.manifest_sha256:
            raise _refused(
                "gradient_manifest_digest_mismatch", f"declared {self.manifest_sha256}, the entries give {found}"
            )
        self._validate_expected()
        self._validate_families()

    def _validate_expected(self) -> None:
        seen: set[tuple[str, str]] = set()
        for index, entry in enumerate(self.expected):
            for name in ("root", "key", "family"):
                if is_blank(getattr(entry, name)):
                    raise _refused(f"gradient_{name}_blank", f"expected[{index}].{name} is blank")
            pair = (entry.root, entry.key)
            if pair in seen:
                raise _refused("gradient_key_repeated", f"expected[{index}] repeats {entry.root}/{entry.key}")
            seen.add(pair)

    def _validate_families(self) -> None:
        members = Counter(entry.family for entry in self.expected)
        seen: set[str] = set()
        for index, family in enumerate(self.families):
            if is_blank(text(family.family, "family")):
                raise _refused("gradient_family_name_blank", f"families[{index}].family is blank")
            if family.family in seen:
                raise _refused("gradient_family_repeated", f"families[{index}] repeats {family.family}")
            seen.add(family.family)
            _validate_family(family, members[family.family])
        undeclared = [name for name in members if name not in seen]
        if undeclared:
            raise _refused("gradient_family_undeclared", f"no family record for {', '.join(undeclared)}")

    def to_json(self) -> dict[str, Any]:
        """The contract as a JSON object under the protocol's names."""
        return {
            "manifest_sha256": self.manifest_sha256,
            "expected": [{"root": e.root, "key": e.key, "family": e.family} for e in self.expected],
            "families": [
                {"family": f.family, "expectation": f.expectation.value, "min_present": f.min_present}
                for f in self.families
            ],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> GradientContract:
        """Read what :meth:`to_json` wrote; raises :class:`ContractError` for a missing or mistyped member."""
        try:
            expected = tuple(
                ExpectedGradient(*(text(e[name], name) for name in ("root", "key", "family")))
                for e in value["expected"]
            )
            families = tuple(_family_from_json(item) for item in value["families"])
            return cls(text(value["manifest_sha256"], "manifest_sha256"), expected, families)
        except (KeyError, TypeError) as fault:
            raise _refused("gradient_contract_malformed", f"missing or mistyped member: {fault}") from fault


def _validate_family(family: GradientFamilyContract, members: int) -> None:
    if not members:
        raise _refused("gradient_family_without_members", f"family {family.family} has no member in the manifest")
    if family.expectation is GradientExpectation.INACTIVE:
        if family.min_present != 0:
            raise _refused(
                "gradient_family_minimum",
                f"inactive family {family.family} has min_present {family.min_present}, expected 0",
            )
    elif not 1 <= family.min_present <= members:
        raise _refused(
            "gradient_family_minimum",
            f"family {family.family} has min_present {family.min_present}, expected 1 to {members}",
        )


def _family_from_json(value: Mapping[str, Any]) -> GradientFamilyContract:
    return GradientFamilyContract(
        text(value["family"], "family"),
        member(GradientExpectation, value["expectation"], "expectation"),
        count(value["min_present"], "min_present"),
    )


def _refused(code: str, message: str) -> ContractError:
    return ContractError(message, source="gradient contract", code=code)
