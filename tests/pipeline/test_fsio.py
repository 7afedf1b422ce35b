"""Atomic files: the old content or the new, and nothing beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planewise.pipeline import fsio
from planewise.pipeline.fsio import is_temporary, open_regular, remove_temporaries, temporary_sibling, write_atomic


def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_atomic(tmp_path / "f", b"old")

    def fail(*_: object) -> None:
        raise OSError(5, "I/O error")

    monkeypatch.setattr(fsio.os, "replace", fail)
    with pytest.raises(OSError, match="I/O error"):
        write_atomic(tmp_path / "f", b"new")
    assert (os.listdir(tmp_path), (tmp_path / "f").read_bytes()) == (["f"], b"old")


def test_temporaries_are_told_from_files_by_their_name_and_kind(tmp_path: Path) -> None:
    left = temporary_sibling(tmp_path / "evidence.json")
    left.write_bytes(b"half")
    (tmp_path / ".hidden.tmp").write_bytes(b"mine")
    (tmp_path / f"{left.name}ab").mkdir()
    remove_temporaries(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([".hidden.tmp", f"{left.name}ab"])


def test_a_long_name_has_a_legal_temporary_beside_it(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 250)
    write_atomic(path, b"1")
    assert path.read_bytes() == b"1"
    assert is_temporary(temporary_sibling(path).name)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str) -> None:
    (tmp_path / "target").write_text("x")
    make = {"link": lambda p: p.symlink_to(tmp_path / "target"), "folder": Path.mkdir, "pipe": os.mkfifo}
    make[kind](tmp_path / "it")
    with pytest.raises(OSError):
        open_regular(tmp_path / "it")
