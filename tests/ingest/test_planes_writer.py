"""Planes on disk: one file per plane with rows, in order, in the declared schema, or a loud fault of our own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from planewise.ingest.base import READERS
from planewise.ingest.contract import PlaneBatch, batch
from planewise.ingest.planes_writer import ROW_GROUP_ROWS, write_planes
from planewise.recorder.errors import InputRefused, PlanewiseError
from planewise.recorder.planes import PLANES


def samples(first: int, count: int) -> PlaneBatch:
    rows = range(first, first + count)
    schema = PLANES["device_memory"].schema
    columns = {"run_id": ["r"] * count, "seq": list(rows), "timestamp_ns": list(rows), "device": ["d"] * count}
    arrays = [pa.array(columns.get(field.name, [None] * count), field.type) for field in schema]
    return PlaneBatch("device_memory", pa.Table.from_arrays(arrays, schema=schema))


def test_every_plane_of_a_trace_comes_back_as_it_was_read(every_kind, tmp_path):
    batches = list(READERS["candle-trace"].read(every_kind))
    counts = write_planes(batches, tmp_path)
    assert list(counts) == [plane for plane in PLANES if plane in counts], "in the order of the planes"
    assert sorted(path.name for path in (tmp_path / "planes").iterdir()) == sorted(
        f"{plane}.parquet" for plane in counts
    )
    for batch_ in batches:
        table = pq.read_table(tmp_path / "planes" / f"{batch_.plane}.parquet")
        assert table.schema.equals(PLANES[batch_.plane].schema)
        assert table.schema.metadata[b"planewise.plane"] == batch_.plane.encode()
        assert table.equals(batch_.table)
        assert counts[batch_.plane] == table.num_rows


def test_plane_without_rows_has_no_file(tmp_path):
    assert write_planes([samples(0, 0), samples(0, 1)], tmp_path) == {"device_memory": 1}
    assert [path.name for path in (tmp_path / "planes").iterdir()] == ["device_memory.parquet"]


def test_small_batches_become_whole_row_groups(tmp_path):
    size = 50_000
    assert write_planes((samples(i * size, size) for i in range(6)), tmp_path) == {"device_memory": 6 * size}
    metadata = pq.read_metadata(tmp_path / "planes" / "device_memory.parquet")
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert groups == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 6 * size - 2 * ROW_GROUP_ROWS]
    column = metadata.row_group(0).column(1)
    assert (column.path_in_schema, column.compression) == ("seq", "ZSTD")
    assert "DELTA_BINARY_PACKED" in column.encodings


def test_null_where_the_plane_forbids_it_is_our_fault(tmp_path):
    broken = samples(0, 2)
    schema = broken.table.schema
    table = broken.table.set_column(2, schema.field(2), pa.array([1, None], pa.int64()))
    with pytest.raises(PlanewiseError, match="timestamp_ns holds NULL") as caught:
        write_planes([PlaneBatch("device_memory", table)], tmp_path)
    assert (caught.value.exit_code, caught.value.code) == (4, "plane_null")


def test_nested_null_is_found(tmp_path):
    op = {"run_id": "r", "seq": 0, "span_id": "s", "op_name": "o", "inputs": ["a", None], "shape": [], "dtype": "f32"}
    op |= {"device": "d", "duration_ns": 0, "timestamp_ns": 0, "input_dense_bytes": 0}
    with pytest.raises(PlanewiseError, match=r"inputs\.element holds NULL"):
        write_planes([batch("ops", [op])], tmp_path)


def test_other_schema_and_other_order_are_our_fault(tmp_path):
    table = samples(0, 2).table
    with pytest.raises(PlanewiseError, match="schema"):
        write_planes([PlaneBatch("device_memory", table.drop_columns(["device"]))], tmp_path / "a")
    with pytest.raises(PlanewiseError, match="seq order"):
        write_planes([samples(5, 2), samples(0, 2)], tmp_path / "b")
    with pytest.raises(PlanewiseError, match="seq order"):
        write_planes([PlaneBatch("device_memory", table.take([1, 0]))], tmp_path / "c")


def test_refusal_passes_through(trace, tmp_path):
    path = trace.write(["{"])
    with pytest.raises(InputRefused):
        write_planes(READERS["candle-trace"].read(path), tmp_path / "out")
