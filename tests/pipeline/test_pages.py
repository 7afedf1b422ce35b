"""What pages are made of: lanes, embedded data, links, and the commands and stages that write them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_support import store_with

from planewise.pipeline.bundle import verify_bundle
from planewise.pipeline.cli import run
from planewise.pipeline.pages.html import embedded
from planewise.pipeline.pages.lanes import MOST_LANES, Row, shortened, timeline
from planewise.pipeline.publish import publish

LEGEND = ["a"]
ROWS = st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 30), st.sampled_from([None, "x", "y"])), max_size=30)


def test_children_lie_below_and_what_follows_goes_up_again() -> None:
    rows = [
        Row("step", 10, 100),
        Row("forward", 10, 40),
        Row("mm", 20, 5),
        Row("backward", 50, 60),
        Row("next", 110, 5),
    ]
    found = timeline("Host", rows, LEGEND, total=7)
    assert found is not None
    names = [[found.names[place] for place in lane["n"]] for lane in found.lanes]
    assert names == [["step", "next"], ["forward", "backward"], ["mm"]]
    assert found.lanes[0] == {"s": [0, 100], "d": [100, 5], "n": [0, 4], "m": [0, 0]}
    assert (found.start_ns, found.end_ns, found.total, found.displayed) == (10, 115, 7, 5)


def test_work_that_overlaps_in_one_stream_lies_below_its_stream_alone() -> None:
    rows = [Row("a", 0, 10, lane="stream 7"), Row("b", 5, 10, lane="stream 7"), Row("c", 0, 3, lane="stream 20")]
    found = timeline("cuda:0", rows, LEGEND, total=3)
    assert found is not None
    assert found.lane_names == ["stream 20", "stream 7", ""]


def test_rows_deeper_than_the_lanes_are_counted() -> None:
    found = timeline(
        "Host", [Row("n", at, 2 * MOST_LANES) for at in range(MOST_LANES + 5)], LEGEND, total=MOST_LANES + 5
    )
    assert found is not None
    assert (found.displayed, found.too_deep) == (MOST_LANES, 5)


@given(ROWS)
def test_every_row_is_drawn_once_and_none_overlaps_in_its_lane(rows: list[tuple[int, int, str | None]]) -> None:
    found = timeline("t", [Row("n", start, length, 0, lane) for start, length, lane in rows], LEGEND, total=len(rows))
    if found is None:
        assert not rows
        return
    placed = [(s + found.start_ns, d) for lane in found.lanes for s, d in zip(lane["s"], lane["d"], strict=True)]
    assert sorted(placed) == sorted((start, length) for start, length, _ in rows)
    for lane in found.lanes:
        ends = [s + d for s, d in zip(lane["s"], lane["d"], strict=True)]
        assert all(end <= start for end, start in zip(ends, lane["s"][1:], strict=False))


def test_long_and_unprintable_texts_are_cut_and_escaped() -> None:
    assert shortened("a\u2028b\x00") == "a\\u2028b\\x00"
    assert shortened("x" * 1000, 10) == "xxxxx … xxxxx (1,000 characters)"


@given(st.text())
def test_embedded_json_ends_no_script_and_is_read_back(text: str) -> None:
    block = str(embedded({"names": [text]}))
    assert "<" not in block
    assert "\u2028" not in block
    assert json.loads(block) == {"names": [text]}


def test_a_bundle_has_its_viewer_which_the_manifest_lists(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    [result] = publish(store)
    bundle = Path(str(result.bundle_path))
    verify_bundle(bundle)
    manifest = json.loads((bundle / "bundle.json").read_text())
    assert "viewer.html" in {file["path"] for file in manifest["files"]}
    assert "r1" in (bundle / "viewer.html").read_text()
    assert result.message is None


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    pages = []
    for place in ("a", "b"):
        [result] = publish(store_with(tmp_path / place, "r1"))
        pages.append((Path(str(result.bundle_path)) / "viewer.html").read_bytes())
    assert pages[0] == pages[1]


def test_no_viewer_is_written_where_none_is_wanted(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    assert run(["publish", "--store", str(store.path), "--no-viewer"]) == 0
    assert list(store.path.glob("bundles/*/viewer.html")) == []


def test_a_viewer_that_cannot_be_made_stops_no_publication(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> str:
        raise ValueError("no picture")

    monkeypatch.setattr("planewise.pipeline.pages.viewer.run_page", fails)
    [result] = publish(store_with(tmp_path, "r1"))
    assert (result.status, result.message) == ("published", "has no viewer.html: no picture")


def test_report_writes_one_run(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    [result] = publish(store, viewers=False)
    page = tmp_path / "pages" / "run.html"
    assert run(["report", str(result.bundle_path), "--output", str(page)]) == 0
    assert "What may be claimed" in page.read_text()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "either INPUT or --campaign"),
        (["x", "--campaign", "c.json"], 2, "either INPUT or --campaign"),
        (["missing"], 3, "no such file"),
        (["--campaign", "c.json"], 2, "needs --store"),
        (["--campaign", "c.json", "--store", "store"], 3, "run planewise nightly"),
    ],
)
def test_report_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: list[str], code: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    store_with(tmp_path, "r1")
    planned = [{"capture_step": 1, "run_id": "r1"}]
    manifest = {"schema": "planewise/campaign/1", "campaign_id": "c", "entrypoint": "e", "planned": planned}
    Path("c.json").write_text(json.dumps(manifest))
    assert run(["report", *words, "--output", "page.html"]) == code
    assert message in capsys.readouterr().err
    assert not Path("page.html").exists()


def test_a_page_is_never_written_into_a_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [result] = publish(store_with(tmp_path, "r1"), viewers=False)
    assert run(["report", str(result.bundle_path), "--output", f"{result.bundle_path}/page.html"]) == 2
    verify_bundle(str(result.bundle_path))
