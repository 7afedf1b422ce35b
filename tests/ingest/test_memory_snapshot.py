"""Memory snapshots: dialects by hand, the corpus against its oracle, and damage that costs one record."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import duckdb
import pytest
from mutate import mutant

from planewise.ingest.base import READERS, detect_format
from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.store import Store
from planewise.recorder.errors import InputRefused

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
FRAMES = [
    {"filename": "??", "line": 0, "name": "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc"},
    {"filename": "model.py", "line": 7, "name": "forward"},
]


WITHOUT_REST = """
    SELECT run_id, device, moment
    FROM snapshot_composition JOIN snapshot_peaks USING (run_id, device)
    GROUP BY ALL
    HAVING sum(bytes) IS DISTINCT FROM any_value(CASE moment WHEN 'end' THEN final_live ELSE peak_seeded_bytes END)
    UNION ALL
    SELECT run_id, device, pool_id FROM segment_fragmentation WHERE total_bytes <> active_bytes + inactive_bytes
"""


def block(size: int, state: str = "active_allocated", **more: Any) -> dict[str, Any]:
    return {"address": 4096, "size": size, "requested_size": size - 8, "state": state, "frames": FRAMES, **more}


def segment(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    total = sum(found["size"] or 0 for found in blocks)
    values = {"device": 0, "address": 4096, "total_size": total, "allocated_size": total, "stream": 0}
    return {**values, "segment_type": "small", "segment_pool_id": (0, 0), "blocks": list(blocks), **more}


def entry(action: str, address: int, size: int, **more: Any) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, **more}


def snapshot(folder: Path, value: Any) -> Path:
    path = folder / "s.pickle"
    path.write_bytes(pickle.dumps(value))
    return path


def test_an_entry_has_exact_nanoseconds_its_address_and_its_innermost_python_frame(read, tmp_path):
    trace = [entry("alloc", 2**63 + 5, 100, time_us=1757253255215904, frames=FRAMES)]
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [], "device_traces": [trace]}))
    [row] = planes["allocator_events"]
    assert (row["timestamp_ns"], row["address"], row["bytes"]) == (1757253255215904000, 2**63 + 5, 100)
    assert (row["device"], row["position"], row["frame"]) == ("cuda:0", 0, "model.py:7 forward")
    [run] = planes["runs"]
    assert (run["outcome"], run["time_unit"], run["device"]) == ("complete", "us", "cuda:0")


def test_a_dialect_without_times_has_none(read, tmp_path):
    trace = [entry("alloc", 1, 100), entry("free_completed", 1, 100)]
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [], "device_traces": [[], trace]}))
    assert [(row["device"], row["timestamp_ns"]) for row in planes["allocator_events"]] == [("cuda:1", None)] * 2
    assert planes["runs"][0]["time_unit"] is None


def test_blocks_with_a_history_take_its_size_and_their_place_in_the_segment(read, tmp_path):
    old = {"size": 512, "state": "active_allocated", "history": [{"addr": 1, "real_size": 300, "frames": FRAMES}]}
    free = {"size": 1536, "state": "inactive"}
    planes = read("memory-snapshot", snapshot(tmp_path, [segment(old, free)]))
    found = [(row["address"], row["requested_bytes"], row["frame"]) for row in planes["allocator_blocks"]]
    assert found == [(4096, 300, "model.py:7 forward"), (4608, None, None)]


def test_an_out_of_memory_entry_has_the_free_bytes_of_the_device(read, tmp_path):
    oom = {"action": "oom", "size": 900, "device_free": 100, "stream": 0, "frames": FRAMES}
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [], "device_traces": [[oom]]}))
    [row] = planes["allocator_events"]
    assert (row["action"], row["bytes"], row["device_free_bytes"], row["address"]) == ("oom", 900, 100, None)


def test_a_bad_record_costs_itself_and_marks_the_run(read, tmp_path):
    trace = [entry("alloc", 1, 2**63), entry("alloc", 2**64, 1), {"size": 1}, entry("alloc", 3, 10)]
    bad = segment(block(64), {"size": None, "state": "inactive"})
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [bad, 7], "device_traces": [trace]}))
    assert [row["position"] for row in planes["allocator_events"]] == [3]
    assert planes["runs"][0]["outcome"] is None
    assert {row["reason"]: row["records"] for row in planes["ingest_counts"] if row["fate"] == "dropped"} == {
        "invalid_entry": 3,
        "invalid_block": 1,
        "invalid_segment": 1,
    }


def test_a_bad_segment_costs_its_blocks_and_every_one_is_counted(read, tmp_path):
    bad, good = segment(block(64), block(32), device=-1), segment(block(16))
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [bad, good], "device_traces": []}))
    assert [(row["seq"], row["segment_seq"]) for row in planes["allocator_blocks"]] == [(4, 3)]
    fates = {(r["kind"], r["fate"], r["reason"]): r["records"] for r in planes["ingest_counts"]}
    assert fates["block", "dropped", "no_segment"] == 2
    assert fates["segment", "dropped", "invalid_segment"] == 1


def test_settings_are_tags_and_annotations_are_counted_out(read, tmp_path):
    settings = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "max_split_size": -1, "roundup": {"1": 0}}
    extra = {"allocator_settings": settings, "external_annotations": [{"name": "step"}]}
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [], "device_traces": [], **extra}))
    assert dict(planes["runs"][0]["tags"]) == {
        "allocator_settings.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "allocator_settings.max_split_size": "-1",
        "allocator_settings.roundup": '{"1": 0}',
    }
    assert [(row["kind"], row["reason"]) for row in planes["ingest_counts"]] == [("external_annotation", "not_read")]
    assert planes["runs"][0]["outcome"] == "complete"


def test_a_segment_keeps_its_pool_stream_and_kind(read, tmp_path):
    whole = segment(block(64), segment_pool_id=(0, 3), is_expandable=True, stream=2**64 - 1, allocated_size=8)
    [row] = read("memory-snapshot", snapshot(tmp_path, [whole]))["allocator_segments"]
    assert (row["pool_id"], row["expandable"], row["stream_id"]) == ("0/3", True, 2**64 - 1)
    assert (row["total_bytes"], row["allocated_bytes"], row["segment_type"]) == (64, 8, "small")


def test_categories_are_torchs_own_or_the_users(read, tmp_path):
    trace = [entry("alloc", 1, 1, category="gradient"), entry("alloc", 2, 1, user_metadata="kv cache \ud800")]
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [], "device_traces": [trace]}))
    assert [row["category"] for row in planes["allocator_events"]] == ["gradient", "kv cache ?"]


def test_the_page_of_torchs_viewer_is_read_as_the_snapshot_in_it(read, tmp_path):
    viz = pytest.importorskip("torch.cuda._memory_viz")
    value = {"segments": [segment(block(64))], "device_traces": [[entry("alloc", 1, 56)]]}
    page = tmp_path / "trace.html"
    page.write_text(viz.trace_plot(value))
    planes = read(detect_format(page).name, page)
    plain = read("memory-snapshot", snapshot(tmp_path, value))
    for name in ("allocator_events", "allocator_segments", "allocator_blocks"):
        assert [{**row, "run_id": 0} for row in planes[name]] == [{**row, "run_id": 0} for row in plain[name]]
    page.write_text(page.read_text()[:-400])
    with pytest.raises(InputRefused, match="the snapshot in the page is damaged"):
        list(READERS["memory-snapshot"].read(page))


@pytest.mark.parametrize("where", ["file", "settings", "pool", "device"])
def test_text_that_would_have_no_end_is_never_spelt_out(read, tmp_path, where):
    swelling: Any = "x"
    for _ in range(60):
        swelling = [swelling] * 10
    value: dict[str, Any] = {"segments": [segment(block(8))], "device_traces": []}
    if where == "file":
        value["device_traces"] = [[entry("alloc", 1, 1, frames=[{"filename": swelling, "line": swelling}])]]
    elif where == "settings":
        value["allocator_settings"] = {"a": swelling, "b": {"c": swelling}}
    else:
        value["segments"] = [segment(block(8), **{"segment_pool_id" if where == "pool" else "device": swelling})]
    assert read("memory-snapshot", snapshot(tmp_path, value))["runs"]


def test_frames_of_torch_npu_name_the_device_npu(read, tmp_path):
    frames = [{"filename": "/x/torch_npu/csrc/NPUCachingAllocator.cpp", "line": 1, "name": "f"}]
    trace = [entry("alloc", 1, 1, frames=frames)]
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [], "device_traces": [trace]}))
    assert planes["allocator_events"][0]["device"] == "npu:0"


def test_a_stack_without_python_is_named_by_what_asked_for_the_memory(read, tmp_path):
    names = ["torch::unwind::unwind()", "torch::CapturedTraceback::gather(bool, bool, bool)"]
    names += ["c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate(unsigned long)"]
    names += ["at::detail::empty_generic(c10::ArrayRef<long>)", "at::native::mm(at::Tensor const&)", "start_thread"]
    trace = [entry("alloc", n, 1, frames=[{"filename": "??", "line": 0, "name": x} for x in names[:n]]) for n in (3, 6)]
    planes = read("memory-snapshot", snapshot(tmp_path, {"segments": [], "device_traces": [trace]}))
    assert [row["frame"] for row in planes["allocator_events"]] == [None, "??:0 at::native::mm(at::Tensor const&)"]


def test_an_inactive_block_takes_nothing_from_its_history(read, tmp_path):
    free = {"size": 512, "state": "inactive", "history": [{"addr": 1, "real_size": 300, "frames": FRAMES}]}
    [row] = read("memory-snapshot", snapshot(tmp_path, [segment(free)]))["allocator_blocks"]
    assert (row["requested_bytes"], row["frame"]) == (None, None)


@pytest.mark.parametrize("value", [{"segments": 1}, {"segments": [], "device_traces": [1]}, ["segments"], "segments"])
def test_what_is_no_snapshot_is_refused(tmp_path, value):
    path = snapshot(tmp_path, value)
    assert READERS["memory-snapshot"].detect(path)
    with pytest.raises(InputRefused, match="is no memory snapshot"):
        list(READERS["memory-snapshot"].read(path))


def test_a_pickle_that_swells_by_reference_is_refused(tmp_path):
    shared = segment(*[block(8)] * 300)
    path = snapshot(tmp_path, {"segments": [shared] * 300, "device_traces": []})
    with pytest.raises(InputRefused, match="beyond its own size"):
        list(READERS["memory-snapshot"].read(path))


def test_mutants_are_read_or_refused_and_their_ledger_adds_up(tmp_path):
    rng = random.Random(5)
    trace = [entry("alloc", number, 10 * number, time_us=number, frames=FRAMES) for number in range(1, 6)]
    data = pickle.dumps({"segments": [segment(block(64), block(32, "inactive"))], "device_traces": [trace]})
    for _ in range(1500):
        path = tmp_path / "m.pickle"
        path.write_bytes(mutant(data, rng))
        rows: dict[str, int] = {}
        counted = 0
        try:
            for batch in READERS["memory-snapshot"].read(path):
                rows[batch.plane] = rows.get(batch.plane, 0) + batch.table.num_rows
                if batch.plane == "ingest_counts":
                    counted = sum(row["records"] for row in batch.table.to_pylist() if row["plane"])
        except InputRefused:
            continue
        assert counted == sum(rows.get(f"allocator_{name}", 0) for name in ("events", "segments", "blocks"))


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of real traces is not here")
def test_every_value_of_the_oracle_comes_out_of_the_corpus(tmp_path):
    store = Store.open(tmp_path / "store", create=True)
    results = ingest_sources(store, [CORPUS / "memsnap"])
    assert {result.status for result in results} == {"ingested"}
    run_of = {Path(result.source).name: result.run_id for result in results}
    oracle = json.loads((CORPUS / "oracle_memory_peaks.json").read_text())
    with store.connect() as con:
        for name, devices in oracle.items():
            for expected in devices:
                assert _peaks(con, run_of[Path(name).name], expected["device"]) == tuple(expected.values()), name
        unbalanced = con.execute("SELECT run_id FROM ingest_audit WHERE NOT balanced").fetchall()
        apart = con.execute(WITHOUT_REST).fetchall()
    assert (unbalanced, apart) == ([], [])
    assert len(oracle) == 18


def _peaks(con: duckdb.DuckDBPyConnection, run_id: str | None, device: int) -> tuple[Any, ...]:
    [row] = con.execute(
        "SELECT events, final_live, net, live_at_window_start, peak_from_zero_bytes,"
        " peak_seeded_bytes, min_from_zero FROM snapshot_peaks WHERE run_id = ? AND device SIMILAR TO ?",
        [run_id, f"(cuda|npu):{device}"],
    ).fetchall()
    return (device, *row)


@pytest.mark.skipif(not CORPUS.exists(), reason="the corpus of real traces is not here")
def test_every_snapshot_of_the_corpus_is_recognised_by_its_content():
    assert {detect_format(path).name for path in (CORPUS / "memsnap").iterdir()} == {"memory-snapshot"}
