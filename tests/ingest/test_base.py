"""Formats are told by content; digests by content alone."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from planewise.ingest import source
from planewise.ingest.base import READERS, detect_format, source_digest
from planewise.recorder.errors import IncompatibleInput, InputRefused

add_bytes = source._add_bytes


def test_trace_is_told_by_content_whatever_its_name(every_kind, tmp_path):
    for name, content in (
        ("a.parquet", every_kind.read_bytes()),
        ("b.txt", gzip.compress(every_kind.read_bytes())),
        ("c", b'\n {"schema": "candle-graph/trace/8", "run_id": "r"}'),
    ):
        (tmp_path / name).write_bytes(content)
        assert detect_format(tmp_path / name).name == "candle-trace"


def test_capture_is_told_by_its_header(tmp_path):
    (tmp_path / "header.json").write_text("{}")
    assert detect_format(tmp_path).name == "capture"


@pytest.mark.parametrize("content", [b"\x01\x02\xff\xfe", b"\xde\xad\xbe\xef" * 99])
def test_unknown_content_lists_the_known_formats(tmp_path, content):
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(IncompatibleInput) as caught:
        detect_format(path)
    assert caught.value.code == "unknown_format"
    assert all(name in str(caught.value) for name in READERS)


def test_empty_folder_and_missing_path_are_refused(tmp_path):
    with pytest.raises(IncompatibleInput, match="known formats"):
        detect_format(tmp_path)
    with pytest.raises(InputRefused, match="nothing is there"):
        detect_format(tmp_path / "absent")


def test_digest_of_a_file_is_over_its_bytes(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    assert source_digest(path) == "sha256:" + hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(InputRefused):
        source_digest(tmp_path / "absent")


def test_digest_of_a_folder_sees_names_and_borders(tmp_path):
    def digest(name: str, files: dict[str, bytes]) -> str:
        for file, content in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return source_digest(tmp_path / name)

    same = digest("a", {"x": b"1", "d/y": b"23"})
    assert digest("b", {"d/y": b"23", "x": b"1"}) == same
    others = [{"x": b"12", "d/y": b"3"}, {"x": b"1", "d/z": b"23"}, {"x": b"1"}, {"x": b"1", "d/y": b"32"}]
    assert same not in {digest(f"o{i}", files) for i, files in enumerate(others)}


def test_a_digest_is_that_of_the_content_now_though_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[Path] = []
    monkeypatch.setattr(source, "_RESTS_NS", -(1 << 62))  # Every file rests.
    monkeypatch.setattr(source, "_add_bytes", lambda digest, file: read.append(file) or add_bytes(digest, file))
    path = tmp_path / "a"
    for content in (b"abc", b"abd", b"abc"):
        path.write_bytes(content)
        for _ in range(2):
            assert source_digest(path) == "sha256:" + hashlib.sha256(content).hexdigest()
    assert len(read) == 3, "each content is read once"


def test_a_file_that_was_just_written_is_read_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[Path] = []
    monkeypatch.setattr(source, "_add_bytes", lambda digest, file: read.append(file) or add_bytes(digest, file))
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert source_digest(path) == source_digest(path)
    assert len(read) == 2
