"""Shards: what a file holds, and each flush trigger on its own."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from recorder_support import TRAINING, document, rows

from planewise import ContractError, RecorderOptions, TraceSession
from planewise.recorder import shards
from planewise.recorder.families import FAMILIES, shard_name
from planewise.recorder.foreign_planes import FOREIGN_PLANES
from planewise.recorder.planes import PLANES
from planewise.recorder.shards import ROW_BYTES

NEVER: dict[str, float] = {"flush_rows": 10**9, "flush_bytes": 10**12, "flush_seconds": 10**6}


def opened(folder: Path, **options: float) -> TraceSession:
    return TraceSession.open(folder, TRAINING, run_id="r", options=RecorderOptions(**{**NEVER, **options}))  # type: ignore[arg-type]


def eventually(test: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not test() and time.monotonic() < deadline:
        time.sleep(0.005)
    return test()


def shard_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.parquet"))


def test_families_are_the_planes_with_spans_split_in_two() -> None:
    foreign = {plane.name for plane in FOREIGN_PLANES}
    assert set(FAMILIES) == set(PLANES) - {"runs", "spans", "ingest_issues"} - foreign | {"spans_start", "spans_end"}
    assert FAMILIES["tensors"].columns == PLANES["tensors"].columns


def test_a_family_has_no_foreign_column_and_requires_what_only_foreign_traces_lack() -> None:
    assert not {"parent_seq", "external_id"} & set(FAMILIES["ops"].column_names)
    assert PLANES["ops"].schema.field("span_id").nullable
    assert not FAMILIES["ops"].schema.field("span_id").nullable


def test_span_ends_are_a_family_of_their_own() -> None:
    assert FAMILIES["spans_end"].column_names == ("run_id", "seq", "id", "duration_ns")
    assert not FAMILIES["spans_end"].schema.field("duration_ns").nullable
    assert shard_name("ops", 12) == "ops-000012.parquet"


def test_a_shard_carries_its_plane_version_and_run(tmp_path: Path) -> None:
    with opened(tmp_path / "c"):
        pass
    schema = pq.read_schema(tmp_path / "c" / "spans_start-000001.parquet")
    assert schema.metadata == {
        b"planewise.plane": b"spans_start",
        b"planewise.plane_version": b"1",
        b"planewise.run_id": b"r",
    }
    assert schema.field("start_ns").metadata[b"unit"] == b"ns"
    assert schema.equals(FAMILIES["spans_start"].schema)


def test_integers_are_delta_packed_text_is_a_dictionary_and_all_is_zstd(tmp_path: Path) -> None:
    with opened(tmp_path / "c") as session:
        session.record_op(
            session.root_id, "a", shape=[1], dtype="f32", device="cpu", duration_ns=0, input_dense_bytes=0, inputs=["x"]
        )
    group = pq.ParquetFile(tmp_path / "c" / "ops-000001.parquet").metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    encodings = {column.path_in_schema: column.encodings for column in columns}
    assert {column.compression for column in columns} == {"ZSTD"}
    for name in ("seq", "timestamp_ns", "shape.list.element", "input_dense_bytes"):
        assert "DELTA_BINARY_PACKED" in encodings[name]
    for name in ("run_id", "op_name", "inputs.list.element"):
        assert "RLE_DICTIONARY" in encodings[name]


def test_a_flipped_bit_in_a_page_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path / "c") as session:
        for number in range(100):
            session.record_scalar(session.root_id, "x", float(number) ** 0.5)
    shard = tmp_path / "c" / "tensor_stats-000001.parquet"
    group = pq.ParquetFile(shard).metadata.row_group(0)
    rms = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "rms")
    content = bytearray(shard.read_bytes())
    content[rms.data_page_offset + rms.total_compressed_size - 8] ^= 1
    shard.write_bytes(content)
    with pytest.raises(OSError, match=r"CRC|Corrupt|corrupt"):
        pq.read_table(shard, page_checksum_verification=True)


def test_rows_trigger_flushes_every_family(tmp_path: Path) -> None:
    session = opened(tmp_path / "c", flush_rows=4)
    for _ in range(2):
        session.record_scalar(session.root_id, "x", 1.0)
    assert shard_files(tmp_path / "c") == []
    session.record_scalar(session.root_id, "x", 1.0)  # The fourth row: the root's start is the first.
    assert eventually(lambda: len(shard_files(tmp_path / "c")) == 2)
    assert shard_files(tmp_path / "c") == ["spans_start-000001.parquet", "tensor_stats-000001.parquet"]
    session.finish()


def test_bytes_trigger_counts_long_values(tmp_path: Path) -> None:
    session = opened(tmp_path / "c", flush_bytes=ROW_BYTES["spans_start"] + ROW_BYTES["engine_events"] + 1000)
    session.record_engine_event("stage")
    assert shard_files(tmp_path / "c") == []
    session.record_engine_event("stage", attributes={"x": "y" * 1000})
    assert eventually(lambda: "engine_events-000001.parquet" in shard_files(tmp_path / "c"))
    session.finish()


def test_seconds_trigger_flushes_without_another_record(tmp_path: Path) -> None:
    session = opened(tmp_path / "c", flush_seconds=0.02)
    assert eventually(lambda: shard_files(tmp_path / "c") == ["spans_start-000001.parquet"])
    session.record_scalar(session.root_id, "x", 1.0)
    assert eventually(lambda: "tensor_stats-000001.parquet" in shard_files(tmp_path / "c"))
    session.finish()


def test_each_flush_is_one_more_numbered_shard_and_nothing_temporary_stays(tmp_path: Path) -> None:
    with opened(tmp_path / "c") as session:
        for number in range(3):
            session.record_scalar(session.root_id, f"x{number}", 1.0)
            session.flush()
            session.flush()  # Nothing new: no empty shard.
    assert [name for name in shard_files(tmp_path / "c") if name.startswith("tensor")] == [
        f"tensor_stats-{number:06d}.parquet" for number in (1, 2, 3)
    ]
    assert [row["label"] for row in rows(tmp_path / "c", "tensor_stats")] == ["x0", "x1", "x2"]
    assert list((tmp_path / "c").glob("*.tmp")) == []


def test_a_slow_disk_makes_the_recorder_wait_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, waiting = shards.write_bytes, []

    def slow(path: Path, content: object) -> None:
        time.sleep(0.01)
        waiting.append(len(session._writer._pending))
        real(path, content)

    monkeypatch.setattr(shards, "write_bytes", slow)
    session = opened(tmp_path / "c", flush_rows=2, pending_flushes=2)
    for _ in range(30):
        session.record_scalar(session.root_id, "x", 1.0)
    session.finish()
    assert len(rows(tmp_path / "c", "tensor_stats")) == 30
    assert max(waiting) <= 3


def test_a_collector_callback_may_record_from_any_thread(tmp_path: Path) -> None:
    class Cycle:
        pass

    session = opened(tmp_path / "c", flush_rows=50)
    root = session.root_id
    for number in range(300):
        cycle = Cycle()
        cycle.me = cycle  # type: ignore[attr-defined]
        weakref.finalize(cycle, session.record_scalar, root, f"x{number}", 1.0).atexit = False
    del cycle
    worker = threading.Thread(target=gc.collect)
    worker.start()
    worker.join()
    gc.collect()
    session.finish()
    assert len(rows(tmp_path / "c", "tensor_stats")) == 300


@pytest.mark.parametrize("name", ["flush_rows", "flush_bytes", "flush_seconds", "pending_flushes"])
def test_options_refuse_limits_that_never_or_always_hold(name: str) -> None:
    with pytest.raises(ContractError):
        RecorderOptions(**{name: 0})  # type: ignore[arg-type]


def test_terminal_counts_the_rows_on_disk(tmp_path: Path) -> None:
    with opened(tmp_path / "c", flush_rows=3) as session:
        for _ in range(10):
            session.record_scalar(session.root_id, "x", 1.0)
    terminal = document(tmp_path / "c", "terminal.json")
    assert terminal["rows"] == {"spans_start": 1, "tensor_stats": 10, "spans_end": 1}
