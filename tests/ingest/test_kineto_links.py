"""The innermost enclosing span and operation of host events, against a search of all pairs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planewise.ingest import kineto_order
from planewise.ingest.kineto_links import LAUNCH, OP, SPAN, Nesting

events = st.lists(
    st.tuples(st.sampled_from([SPAN, OP, LAUNCH]), st.integers(0, 1), st.integers(0, 12), st.integers(0, 8)),
    max_size=25,
)


def nest(found: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """(span, op) of each event; the seq of an event is its position."""
    result: dict[int, tuple[int, int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        nesting = Nesting(Path(folder))
        for family in (OP, LAUNCH, SPAN):
            rows = [
                (seq, thread, start, start + dur) for seq, (f, thread, start, dur) in enumerate(found) if f == family
            ]
            for part in filter(None, (rows[:4], rows[4:5], rows[5:])):
                nesting.add(family, *(np.array(column, np.int64) for column in zip(*part, strict=True)))
        links = nesting.link()
        for family in (SPAN, OP, LAUNCH):
            seqs = [seq for seq, event in enumerate(found) if event[0] == family]
            spans, ops = links.read(family, 0, len(seqs))
            result |= dict(zip(seqs, zip(spans.tolist(), ops.tolist(), strict=True), strict=True))
    return [result[seq] for seq in range(len(found))]


def brute(found: list[tuple[int, int, int, int]], seq: int, family: int) -> int:
    _, thread, start, dur = found[seq]
    key: Any = (start, -(start + dur), seq)
    around = [
        (other_start, -(other_start + other_dur), other)
        for other, (kind, other_thread, other_start, other_dur) in enumerate(found)
        if kind == family and other_thread == thread and other_start + other_dur >= start + dur
    ]
    return max((candidate for candidate in around if candidate < key), default=(0, 0, -1))[2]


@given(events)
def test_links_are_the_innermost_of_all_that_enclose(found: list[tuple[int, int, int, int]]) -> None:
    assert nest(found) == [(brute(found, seq, SPAN), brute(found, seq, OP)) for seq in range(len(found))]


def test_crossing_slices_do_not_enclose_each_other_and_hide_nothing() -> None:
    found = [(SPAN, 0, 0, 10), (OP, 0, 1, 4), (OP, 0, 3, 5), (LAUNCH, 0, 4, 1), (LAUNCH, 0, 6, 1), (LAUNCH, 0, 4, 3)]
    assert nest(found) == [(-1, -1), (0, -1), (0, -1), (0, 2), (0, 2), (0, 2)]


def test_of_equal_intervals_the_earlier_record_encloses_the_later() -> None:
    assert nest([(OP, 0, 1, 2), (OP, 0, 1, 2), (LAUNCH, 0, 1, 2)]) == [(-1, -1), (-1, 0), (-1, 1)]


@given(events)
def test_links_do_not_depend_on_how_many_events_are_held_at_once(found: list[tuple[int, int, int, int]]) -> None:
    wanted = nest(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kineto_order, "RUN_ROWS", 3)
        patch.setattr(kineto_order, "_SAMPLE_EVERY", 1)
        assert nest(found) == wanted


def test_other_threads_enclose_nothing() -> None:
    assert nest([(OP, 0, 0, 9), (OP, 1, 1, 2), (LAUNCH, 1, 1, 1)]) == [(-1, -1), (-1, -1), (-1, 1)]


def test_ends_found_later_count(tmp_path: Path) -> None:
    nesting = Nesting(tmp_path)
    for family, seq, start, end in ((SPAN, 0, 0, 0), (SPAN, 1, 2, 2), (OP, 2, 3, 4)):
        nesting.add(family, *(np.array([value], np.int64) for value in (seq, 0, start, end)))
    links = nesting.link((np.array([0]), np.array([9])))
    assert links.read(SPAN, 0, 2)[0].tolist() == [-1, 0]
    assert links.read(OP, 0, 1)[0].tolist() == [0]


def test_a_long_staircase_of_crossing_slices_takes_no_quadratic_time(tmp_path: Path) -> None:
    nesting = Nesting(tmp_path)
    count = 200_000
    seq = np.arange(count, dtype=np.int64)
    nesting.add(OP, seq, np.zeros(count, np.int64), seq, seq + count)
    nesting.add(LAUNCH, seq + count, np.zeros(count, np.int64), seq, seq + 1)
    links = nesting.link()
    assert links.read(LAUNCH, 0, count)[1].tolist() == seq.tolist()
