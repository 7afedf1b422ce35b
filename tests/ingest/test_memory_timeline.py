"""torch.profiler's raw memory timeline: entries by hand, torch's own export, and the corpus file."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from mutate import mutant

from planewise.ingest.base import READERS, detect_format
from planewise.recorder.errors import InputRefused

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def export(folder: Path, *entries: object) -> Path:
    path = folder / "t.raw.json.gz"
    path.write_bytes(gzip.compress(json.dumps(list(entries)).encode()))
    return path


def test_entries_keep_time_action_change_and_category(read, tmp_path):
    path = export(tmp_path, [-1, 1, 512, 0], [1696966048083248105, 3, -512, 0], [1696966048083248105, 3, 512, 4])
    planes = read(detect_format(path).name, path)
    found = [(r["timestamp_ns"], r["action"], r["bytes"], r["category"]) for r in planes["memory_timeline"]]
    assert found == [
        (None, "preexisting", 512, "parameter"),
        (1696966048083248105, "increment_version", -512, "parameter"),
        (1696966048083248105, "increment_version", 512, "activation"),
    ]
    assert planes["runs"][0]["outcome"] == "complete"


def test_what_is_no_entry_costs_itself(read, tmp_path):
    path = export(tmp_path, [-1, 1, 512, 7], [-1, 9, 512, 0], [-2, 1, 1, 0], [1, 2, 3], "x", [1, 4, -512, 7])
    planes = read("memory-timeline", path)
    assert [(row["seq"], row["category"]) for row in planes["memory_timeline"]] == [(0, None), (5, None)]
    assert planes["runs"][0]["outcome"] is None
    [dropped] = [row for row in planes["ingest_counts"] if row["fate"] == "dropped"]
    assert (dropped["reason"], dropped["records"]) == ("invalid_entry", 4)


def test_a_cut_export_is_refused(read, tmp_path):
    path = tmp_path / "t.raw"
    path.write_text("[[-1, 1, 512, 7], [-1, 1")
    with pytest.raises(InputRefused, match="is no whole memory timeline"):
        read("memory-timeline", path)


@pytest.mark.filterwarnings("ignore")
def test_an_export_of_torch_itself_is_read(read, tmp_path):
    torch = pytest.importorskip("torch")
    profiler = pytest.importorskip("torch.profiler")
    model, inputs = torch.nn.Linear(64, 64), torch.ones(8, 64)
    with profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as prof:
        model(inputs).sum().backward()
    path = tmp_path / "t.raw.json.gz"
    prof.export_memory_timeline(str(path), device="cpu")
    planes = read(detect_format(path).name, path)
    raw = json.loads(gzip.decompress(path.read_bytes()))
    assert [row["bytes"] for row in planes["memory_timeline"]] == [entry[2] for entry in raw]
    assert {row["category"] for row in planes["memory_timeline"]} >= {"parameter", "gradient"}


@pytest.mark.filterwarnings("ignore")
def test_torchs_own_picture_and_its_own_sums_are_refused_with_the_export_to_make(read, tmp_path):
    profiler = pytest.importorskip("torch.profiler._memory_profiler")
    sums, page = tmp_path / "t.json", tmp_path / "t.html"
    timeline = profiler.MemoryProfileTimeline(_Profile())
    timeline.export_memory_timeline(str(sums), "cpu")
    page.write_text("""<html>
<head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title></head>
<body>
  <img src='data:image/png;base64,iVBORw0KGgo='>
</body>
</html>""")
    assert json.loads(sums.read_text()) == [[5], [[0, 0, 0, 0, 0, 0, 0, 0, 512]]]
    for path, what in ((sums, "sums by category"), (page, "a picture of it and no numbers")):
        with pytest.raises(InputRefused, match=what) as caught:
            read(detect_format(path).name, path)
        assert caught.value.code == "not_the_raw_export"
        assert "raw.json.gz" in str(caught.value.remedy)


class _Profile:
    """The two members of a memory profile that its exports read."""

    def __init__(self) -> None:
        torch = pytest.importorskip("torch")
        profiler = pytest.importorskip("torch.profiler._memory_profiler")
        key = type("Key", (), {"device": torch.device("cpu")})()
        self.timeline = [(5000, profiler.Action.CREATE, (key, 0), 512)]
        self._categories = None


def test_mutants_are_read_or_refused_and_counted(tmp_path):
    rng = random.Random(6)
    data = json.dumps([[-1, 1, 512, 0], [1696966048083248105, 2, 2**40, 5], [7, 3, -4, 7]] * 2).encode()
    for _ in range(1000):
        path = tmp_path / "m.raw.json"
        path.write_bytes(mutant(data, rng))
        try:
            tables = [(batch.plane, batch.table) for batch in READERS["memory-timeline"].read(path)]
        except InputRefused:
            continue
        rows = sum(table.num_rows for plane, table in tables if plane == "memory_timeline")
        counts = [row for plane, table in tables if plane == "ingest_counts" for row in table.to_pylist()]
        assert rows == sum(row["records"] for row in counts if row["plane"])


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of real traces is not here")
def test_the_corpus_export_is_read_whole(read):
    path = CORPUS / "memtimeline" / "hta_memory_timeline.raw.gz"
    planes = read(detect_format(path).name, path)
    raw = json.loads(gzip.decompress(path.read_bytes()))
    assert len(planes["memory_timeline"]) == len(raw) == 16845
    assert sum(row["bytes"] for row in planes["memory_timeline"]) == sum(entry[2] for entry in raw)
