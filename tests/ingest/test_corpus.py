"""Every file of the corpus of real traces is claimed by exactly one reader, or named for what it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planewise.ingest.base import READERS, detect_format
from planewise.recorder.errors import InputRefused

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
NSYS = "nsys"
"""Stands for whichever of the readers of Nsight Systems exports, whose names begin so."""

READER_OF = {
    "ascend_csv": "ascend-csv",
    "ascend_db": "ascend-db",
    "ascend_trace": "ascend-trace",
    "candle_graph": NSYS,
    "chrome_other": "kineto",
    "kineto": "kineto",
    "memsnap": "memory-snapshot",
    "memtimeline": "memory-timeline",
    "nsys_csv": NSYS,
    "nsys_recipe": NSYS,
    "nsys_sqlite": NSYS,
    "rocprof": "rocprof-json",
}
"""The reader of the entries of a folder, but for those below."""

OTHERWISE = {"candle_graph/runtime1_doc_example.jsonl": "candle-trace"}
REFUSED_OF = {"exec_trace": "execution_trace", "lfs_pointer": "lfs_pointer"}
REFUSED = {"chrome_other/mlserving_triton_trace.json": "triton_trace"}
"""Codes by which the entries of a folder, and single files, are refused before any reader."""

EITHER = {"nsys_csv/pipit_cloverleaf_gpu_events.csv": "csv"}
"""Files that another tool derived from an export: read by that export's reader, or refused by this code."""


def entries() -> Iterator[Path]:
    """Everything in the folders of the corpus; a folder in them is one source."""
    for folder in sorted(path for path in CORPUS.iterdir() if path.is_dir()) if CORPUS.is_dir() else ():
        yield from sorted(folder.iterdir())


def names() -> list[str]:
    return [path.relative_to(CORPUS).as_posix() for path in entries()]


@pytest.mark.parametrize("name", names() or ["absent"])
def test_a_file_has_exactly_one_reader_or_a_name(name):
    if name == "absent":
        pytest.skip("the corpus of real traces is not here")
    path, folder = CORPUS / name, name.split("/")[0]
    code = REFUSED.get(name) or REFUSED_OF.get(folder)
    if code:
        assert refusal(path) == code
        return
    wanted = OTHERWISE.get(name) or READER_OF[folder]
    if not any(reader.startswith(wanted) for reader in READERS):
        pytest.skip(f"no reader {wanted} is here")
    claims = [reader.name for reader in READERS.values() if reader.detect(path)]
    if not claims and name in EITHER:
        assert refusal(path) == EITHER[name]
        return
    assert len(claims) == 1, claims
    assert claims[0].startswith(wanted)
    assert detect_format(path).name == claims[0]


def refusal(path: Path) -> str:
    """The code by which a source that no reader claims is refused."""
    assert not [reader.name for reader in READERS.values() if reader.detect(path)]
    with pytest.raises(InputRefused) as caught:
        detect_format(path)
    assert caught.value.remedy
    return caught.value.code


def test_every_folder_of_the_corpus_has_its_expectation():
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real traces is not here")
    folders = {path.name for path in CORPUS.iterdir() if path.is_dir()}
    assert folders <= READER_OF.keys() | REFUSED_OF.keys()
