"""Raw reports of Nsight Systems: named, with the command that exports them."""

from __future__ import annotations

import pytest

from planewise.ingest.base import detect_format
from planewise.recorder.errors import InputRefused


@pytest.mark.parametrize("content", [b"\x00\x01\x02 report", b"\x1f\x8b\x08\0 damaged", b"PK\x03\x04 more\0"])
def test_a_raw_report_is_refused_with_the_command_that_exports_it(tmp_path, content):
    path = tmp_path / "my report1.nsys-rep"
    path.write_bytes(content)
    with pytest.raises(InputRefused, match="raw report of Nsight Systems") as caught:
        detect_format(path)
    assert caught.value.code == "nsys_raw_report"
    command = "nsys export --type sqlite --output 'my report1.sqlite' 'my report1.nsys-rep'"
    assert caught.value.remedy == f"run: {command}"


def test_a_recording_is_imported_before_it_is_exported(tmp_path):
    path = tmp_path / "r.qdstrm"
    path.write_bytes(b"\0\1")
    with pytest.raises(InputRefused) as caught:
        detect_format(path)
    assert "QdstrmImporter" in caught.value.remedy


def test_a_pointer_under_the_name_of_a_report_stays_a_pointer(tmp_path):
    path = tmp_path / "r.nsys-rep"
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 5\n")
    with pytest.raises(InputRefused) as caught:
        detect_format(path)
    assert caught.value.code == "lfs_pointer"


def test_text_under_the_name_of_a_report_is_text(tmp_path):
    path = tmp_path / "r.nsys-rep"
    path.write_text("404: not found\n")
    with pytest.raises(InputRefused) as caught:
        detect_format(path)
    assert caught.value.code == "text"
