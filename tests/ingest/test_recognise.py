"""What no reader reads is named for what it is, by content, with a remedy."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planewise.ingest.base import READERS, detect_format
from planewise.ingest.recognise import refusal
from planewise.recorder.errors import IncompatibleInput, InputRefused

OID = "ab" * 32
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 870601265\n"
TRACE = {"schema": "1.0.2-chakra.0.0.4", "pid": 1, "nodes": [{"id": 2, "name": "[pytorch|profiler|execution_trace]"}]}


def refused(path: Path, content: bytes) -> InputRefused:
    path.write_bytes(content)
    with pytest.raises(IncompatibleInput) as caught:
        detect_format(path)
    assert caught.value.source == str(path)
    assert caught.value.remedy
    return caught.value


def tar_of(*names: str, size: int = 0) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = size
            archive.addfile(member, io.BytesIO(random.Random(1).randbytes(size)))
    return stream.getvalue()


def damaged(data: bytes) -> bytes:
    """Its second half is of bytes that no gzip has."""
    return data[: len(data) // 2] + b"\xff" * (len(data) // 2)


def zip_of(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, "x")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_file"),
        (b" \n\n", "empty_file"),
        (b"\0" * 4096, "empty_file"),
        (gzip.compress(b""), "empty_file"),
        (gzip.compress(b"some text\n" * 99)[:10], "damaged_stream"),
        (POINTER.encode(), "lfs_pointer"),
        (json.dumps(TRACE).encode(), "execution_trace"),
        (tar_of("a/chakra.0.et"), "execution_trace"),
        (tar_of("a/trace.json"), "archive"),
        (zip_of("trace.json"), "archive"),
        (b"PK\x03\x04", "archive"),
        (damaged(tar_of("a", size=1 << 20)), "archive"),
        (b"BZh91AY&SY", "archive"),
        (b'{"version":"0.0.1","$schema":"https://www.speedscope.app/file-format-schema.json"}', "speedscope"),
        (b'{"shared": {"frames": []}, "profiles": []}', "speedscope"),
        (b'[{"id":1,"timestamps":[{"name":"HTTP_RECV_START","ns":5294383183578}]}]', "triton_trace"),
        (b"{}", "unknown_json"),
        (b'\n [1, 2, {"a": 3}]', "unknown_json"),
        (b"<!DOCTYPE html>\n<html><body>404</body></html>", "html"),
        (b"loss 0.3\nloss 0.2\n", "text"),
        (b"step,loss\n1,0.3\n2,0.2\n", "csv"),
        (pickle.dumps({"a": 1}, 4), "unknown_pickle"),
        (b"\x89PNG\r\n\x1a\n....", "image"),
        (b"SQLite format 3\0" + b"\0" * 84, "sqlite"),
        (b"\x01\x02\x03\xff\xfe", "unknown_format"),
    ],
)
def test_content_is_named_for_what_it_is(tmp_path, content, code):
    found = refused(tmp_path / "trace.json", content)
    assert found.code == code
    if code == "unknown_format":
        assert all(name in str(found) for name in READERS)


def test_a_parquet_file_of_no_plane_is_named(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x")
    assert refusal(tmp_path / "x", "").code == "parquet"


def test_an_lfs_pointer_names_its_object_and_the_command(tmp_path):
    found = refused(tmp_path / "memory.pickle", POINTER.encode())
    assert OID in found.message
    assert "870601265 bytes" in found.message
    assert "git lfs pull" in str(found)


def test_an_execution_trace_says_its_schema_and_what_to_ingest(tmp_path):
    found = refused(tmp_path / "rank0.pt.trace.json.gz", gzip.compress(json.dumps(TRACE).encode()))
    assert "1.0.2-chakra.0.0.4" in found.message
    assert "Kineto" in str(found.remedy)


def test_a_folder_that_is_no_source_and_a_pipe_are_refused(tmp_path):
    assert refusal(tmp_path, "f").code == "unknown_format"
    assert refusal(Path("/dev/null"), "f").code == "not_a_file"


@settings(max_examples=300, deadline=None)
@given(
    start=st.sampled_from([b"", b"PK\x03\x04", b"\x1f\x8b", b"{", b"[", b"\x80\x04", b"BZh", b"<html"]),
    rest=st.binary(),
)
def test_any_bytes_are_refused_and_never_raise_otherwise(tmp_path_factory, start, rest):
    path = tmp_path_factory.getbasetemp() / "anything"
    path.write_bytes(start + rest)
    assert isinstance(refusal(path, ", ".join(READERS)), InputRefused)
