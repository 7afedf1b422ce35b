"""Connections over folders of planes that lie anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundles import publish
from cohorts import add_run

from planewise.pipeline.loose import bundle_connection
from planewise.recorder.errors import InputRefused
from support import TinyStore


def test_folders_are_read_together_whatever_their_names_hold(tiny: TinyStore, tmp_path: Path) -> None:
    folders = []
    for run_id, name in (("a", "run_id=z"), ("b", "it's [1]*?")):
        add_run(tiny, run_id, 5)
        folders.append(publish(tiny, run_id, tmp_path / name))
    with bundle_connection([*folders, folders[0]]) as con:
        rows = con.execute("SELECT run_id, outer_wall_time_ns FROM series_outer_wall_time ORDER BY 1").fetchall()
        assert rows == [("a", 5), ("b", 5)]
        assert con.execute("SELECT count(*) FROM ops").fetchall() == [(0,)]


def test_no_folder_gives_every_view_and_no_row() -> None:
    with bundle_connection([]) as con:
        assert con.execute("SELECT count(*) FROM run_health").fetchall() == [(0,)]


@pytest.mark.parametrize("plane", ["runs", "ops"])
def test_a_file_that_is_not_its_plane_is_refused(tiny: TinyStore, tmp_path: Path, plane: str) -> None:
    add_run(tiny, "a", 5)
    folder = publish(tiny, "a", tmp_path / "a")
    if plane == "runs":
        (folder / "planes" / "runs.parquet").write_bytes(b"no Parquet")
    else:
        (folder / "planes" / "spans.parquet").rename(folder / "planes" / "ops.parquet")
    with pytest.raises(InputRefused, match=f"the plane {plane} cannot be read"):
        bundle_connection([folder])
