"""Pickles of plain containers: what is read, and that nothing else is ever looked up, called or built."""

from __future__ import annotations

import gzip
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutate import mutant

from planewise.ingest.pickles import is_pickle, load_plain
from planewise.recorder.errors import InputRefused

TEXTS = st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False) | st.text()


def containers(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.tuples(st.integers(0, 9), st.floats(0, 1))
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | pairs)


class Evil:
    """Runs a command when it is unpickled by anything less careful."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("executed",)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "s.pickle"
    path.write_bytes(data)
    return path


@given(value=containers(TEXTS | st.binary()), protocol=st.integers(3, 5))
def test_plain_containers_come_back_as_they_were(
    value: Any, protocol: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.getbasetemp(), pickle.dumps(value, protocol))
    assert load_plain(path)[0] == value


@given(value=containers(TEXTS))
def test_protocol_2_spells_bytes_as_a_call_and_everything_else_plainly(
    value: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert load_plain(written(tmp_path_factory.getbasetemp(), pickle.dumps(value, 2)))[0] == value


@pytest.mark.parametrize("protocol", range(2, 6))
def test_a_call_is_refused_with_its_place_and_not_made(
    protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputRefused, match="stands for more than plain containers") as caught:
        load_plain(written(tmp_path, pickle.dumps({"segments": [Evil()]}, protocol)))
    assert caught.value.code == "unsafe_pickle"
    assert str(caught.value.position).startswith("byte ")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"cos\nsystem\n.", "unsafe_pickle"),
        (b"Pid\n.", "unsafe_pickle"),
        (b"\x82\x01.", "unsafe_pickle"),
        (b"]r\xff\xff\xff\xff.", "damaged_pickle"),  # A memo of 4 thousand million places.
        (b"]p0\n.", "unsafe_pickle"),  # Protocol 0's spelling, which protocols 2 to 5 do not use.
        (b"(i__main__\nX\n.", "unsafe_pickle"),
        (b"(c__main__\nX\no.", "unsafe_pickle"),
        (b"\x8c\x02os\x8c\x06system\x93.", "unsafe_pickle"),
        (b"]Q.", "unsafe_pickle"),
        (b"]\x83\xff\x7f.", "unsafe_pickle"),
        (b"\x8f(K\x01\x90.", "unsafe_pickle"),  # A set.
        (b"\x8a\x0a" + b"\x01" * 10 + b".", "unsafe_pickle"),  # An integer of ten bytes.
        (b"\x8b\xff\xff\xff\x7f.", "unsafe_pickle"),  # An integer of two thousand million bytes.
        (b")\x94h\x00\x86\x94h\x01h\x01\x86.", "unsafe_pickle"),  # Tuples of tuples, hashed without end as a key.
        (b"(" + b"K\x01" * 65 + b"t.", "unsafe_pickle"),
        (b"\x95\xff\xff\xff\xff\xff\xff\xff\xff].", "damaged_pickle"),
        (b"]K\x01s.", "damaged_pickle"),
        (b"a.", "damaged_pickle"),
        (b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "damaged_pickle"),
        (b"\xff.", "damaged_pickle"),
        (b"]", "damaged_pickle"),
        (b".", "damaged_pickle"),
    ],
)
def test_hostile_and_damaged_streams_are_refused(tmp_path: Path, body: bytes, code: str) -> None:
    with pytest.raises(InputRefused) as caught:
        load_plain(written(tmp_path, b"\x80\x04" + body))
    assert caught.value.code == code


def test_a_compressed_pickle_is_read_and_a_cut_one_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(pickle.dumps(list(range(10_000))))
    assert load_plain(written(tmp_path, whole))[0] == list(range(10_000))
    with pytest.raises(InputRefused, match="ends early"):
        load_plain(written(tmp_path, whole[:-20]))


def test_more_containers_than_the_limit_are_refused_before_any_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planewise.ingest.pickles.LIMIT_CONTAINERS", 1000)
    assert len(load_plain(written(tmp_path, pickle.dumps([[] for _ in range(999)])))[0]) == 999
    with pytest.raises(InputRefused, match="more than 1000 containers"):
        load_plain(written(tmp_path, pickle.dumps([[] for _ in range(1000)])))


def test_a_pickle_that_inflates_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planewise.ingest.pickles.LIMIT_BYTES", 1 << 20)
    with pytest.raises(InputRefused, match="longer than") as caught:
        load_plain(written(tmp_path, gzip.compress(b"\x80\x04" + b"N" * (3 << 20))))
    assert caught.value.code == "too_large"


def test_deep_nesting_is_read_without_recursion(tmp_path: Path) -> None:
    depth = 100_000
    value = load_plain(written(tmp_path, b"\x80\x04" + b"]" * depth + b"a" * (depth - 1) + b"."))[0]
    for _ in range(depth - 1):
        [value] = value
    assert value == []


def test_mutants_are_read_or_refused(tmp_path: Path) -> None:
    rng, refusals = random.Random(3), set[str]()
    data = pickle.dumps([{"action": "alloc", "addr": 2**63, "frames": [{"name": "f", "line": 1}]}] * 3)
    for _ in range(2000):
        try:
            load_plain(written(tmp_path, mutant(data, rng)))
        except InputRefused as error:
            refusals.add(error.code)
    assert refusals == {"damaged_pickle", "unsafe_pickle"}


def test_protocols_2_to_5_are_recognised() -> None:
    assert [is_pickle(b"\x80" + bytes([n]) + b".") for n in range(7)] == [False, False, True, True, True, True, False]
