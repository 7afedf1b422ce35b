"""The fuzzer itself: what it passes, and that it sees what it looks for."""

from __future__ import annotations

from pathlib import Path

import fuzz
import pytest

DATA = Path(__file__).parent / "data"


def test_mutants_of_the_shipped_data_are_read_or_refused() -> None:
    found = fuzz.run([DATA], mutants=80, seed=3)
    assert found["failures"] == []
    assert found["totals"].total() == 80
    assert set(found["totals"]) == {"ingested", "refused"}


def test_a_reader_that_raises_is_a_failure_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(path: Path) -> None:
        raise KeyError(path.name)

    monkeypatch.setattr(fuzz, "detect_format", raises)
    ((_, seed, _, why, _), *_) = fuzz.run([DATA], mutants=3, seed=3)["failures"]
    assert (seed, "KeyError: 'mutant'" in why) == (3, True)
