"""Fixtures of all tests: user configuration is shut out, seeds are fixed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from support import TinyStore, emptied

settings.register_profile(
    "planewise", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("planewise")


@pytest.fixture
def tiny() -> TinyStore:
    """An empty in-memory store with every view; it is the one that ``emptied`` returns."""
    return emptied()


@pytest.fixture(autouse=True)
def _no_user_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PLANEWISE_STORE", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
