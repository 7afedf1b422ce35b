"""Views over memory snapshots and memory timelines, by hand and against a walk."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support import TinyStore, emptied

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(1, 50)), max_size=12)


def entry(position: int, action: str, address: int, size: int, **more: Any) -> dict[str, Any]:
    return {"device": "cuda:0", "position": position, "action": action, "address": address, "bytes": size, **more}


def block(size: int, requested: int | None, state: str = "active_allocated", **more: Any) -> dict[str, Any]:
    base = {"device": "cuda:0", "segment_seq": 0, "bytes": size, "requested_bytes": requested, "state": state}
    return {**base, **more}


def test_a_window_that_began_late_shows_both_peaks(tiny: TinyStore) -> None:
    # 300 bytes are live at the end; the window added 100 net, so 200 were live before it. Its own peak is 150.
    tiny.run()
    tiny.add(
        "allocator_events", *[entry(0, "alloc", 1, 100), entry(1, "alloc", 2, 50), entry(2, "free_completed", 2, 50)]
    )
    tiny.add("allocator_blocks", block(512, 100, address=1), block(512, 200, address=3))
    row = tiny.rows(
        "SELECT final_live, net, live_at_window_start, peak_from_zero_bytes, peak_seeded_bytes,"
        " window_complete, peak_position FROM snapshot_peaks"
    )
    assert row == [(300, 100, 200, 150, 350, False, 1)]


def test_without_a_history_the_window_is_the_moment_of_the_snapshot(tiny: TinyStore) -> None:
    tiny.run().add("allocator_blocks", block(512, 100))
    columns = "events, final_live, peak_from_zero_bytes, peak_seeded_bytes, window_complete, peak_position"
    assert tiny.rows(f"SELECT {columns} FROM snapshot_peaks") == [(0, 100, 0, 100, None, None)]
    assert tiny.rows("SELECT moment, known, bytes FROM snapshot_composition") == [("end", True, 100)]


def test_a_window_that_only_frees_has_its_peak_before_it(tiny: TinyStore) -> None:
    tiny.run().add("allocator_events", entry(0, "free_requested", 1, 40), entry(1, "free_completed", 1, 40))
    columns = "live_at_window_start, net, peak_seeded_bytes, min_from_zero, window_complete, peak_position"
    assert tiny.rows(f"SELECT {columns} FROM snapshot_peaks") == [(40, -40, 40, -40, False, None)]
    assert tiny.rows("SELECT known, bytes FROM snapshot_composition") == [(False, 40)]


def test_a_full_history_is_complete_and_its_peak_has_a_time(tiny: TinyStore) -> None:
    tiny.run()
    tiny.add("allocator_events", entry(0, "alloc", 1, 7, timestamp_ns=5000), entry(1, "free_completed", 1, 7))
    columns = "live_at_window_start, peak_seeded_bytes, window_complete, peak_position, peak_timestamp_ns"
    assert tiny.rows(f"SELECT {columns} FROM snapshot_peaks") == [(0, 7, True, 0, 5000)]


def test_devices_and_sums_beyond_64_bits_stay_apart_and_exact(tiny: TinyStore) -> None:
    most = 2**63 - 1
    tiny.run()
    tiny.add("allocator_events", *[entry(n, "alloc", n, most) for n in range(3)])
    tiny.add("allocator_events", {**entry(0, "alloc", 1, 5), "device": "cuda:1"})
    tiny.add("allocator_blocks", *[block(512, most)] * 3, {**block(512, 5), "device": "cuda:1"})
    rows = tiny.rows("SELECT device, peak_seeded_bytes FROM snapshot_peaks ORDER BY device")
    assert rows == [("cuda:0", 3 * most), ("cuda:1", 5)]


def test_a_block_that_does_not_say_what_was_asked_for_leaves_the_seed_unknown(tiny: TinyStore) -> None:
    tiny.run().add("allocator_events", entry(0, "alloc", 1, 100))
    tiny.add("allocator_blocks", block(512, None))
    columns = "final_live, peak_from_zero_bytes, peak_seeded_bytes, window_complete"
    assert tiny.rows(f"SELECT {columns} FROM snapshot_peaks") == [(None, 100, None, None)]
    rows = tiny.rows("SELECT moment, known, blocks, bytes FROM snapshot_composition ORDER BY moment, known")
    assert rows == [("end", False, 1, None), ("peak", False, None, None), ("peak", True, 1, 100)]


def test_the_composition_of_the_peak_has_an_explicit_remainder(tiny: TinyStore) -> None:
    tiny.run()
    tiny.add("allocator_events", entry(0, "alloc", 1, 100, frame="a"), entry(1, "alloc", 2, 50, frame="b"))
    tiny.add("allocator_blocks", block(512, 100, frame="a"), block(512, 50, frame="b"), block(512, 200))
    rows = tiny.rows(
        "SELECT moment, frame, known, blocks, bytes FROM snapshot_composition ORDER BY moment, known, frame"
    )
    assert rows == [
        *[("end", "a", True, 1, 100), ("end", "b", True, 1, 50), ("end", None, True, 1, 200)],
        *[("peak", None, False, None, 200), ("peak", "a", True, 1, 100), ("peak", "b", True, 1, 50)],
    ]


def test_fragmentation_is_what_the_largest_free_block_is_not(tiny: TinyStore) -> None:
    # Segment 0 is shared by two active blocks and one that is free, segment 1 is free whole: 150 + 450 bytes.
    segments = [
        {"device": "cuda:0", "seq": n, "total_bytes": size, "pool_id": "0/0"} for n, size in ((0, 650), (1, 450))
    ]
    tiny.run().add("allocator_segments", *segments)
    tiny.add("allocator_blocks", block(400, 390), block(100, 90, "active_pending_free"), block(150, None, "inactive"))
    tiny.add("allocator_blocks", block(450, None, "inactive", segment_seq=1))
    columns = "segments, total_bytes, allocated_bytes, active_bytes, requested_bytes, inactive_bytes"
    rows = tiny.rows(f"SELECT {columns} FROM segment_fragmentation")
    assert rows == [(2, 1100, 400, 500, 480, 600)]
    split = "inactive_split_bytes, largest_inactive_bytes, fragmentation"
    assert tiny.rows(f"SELECT {split} FROM segment_fragmentation") == [(150, 450, 0.25)]


def test_a_segment_without_free_blocks_has_no_fragmentation(tiny: TinyStore) -> None:
    tiny.run().add("allocator_segments", {"device": "cuda:0", "seq": 0, "total_bytes": 512})
    tiny.add("allocator_blocks", block(512, None))
    columns = "pool_id, active_bytes, requested_bytes, inactive_bytes, largest_inactive_bytes, fragmentation"
    assert tiny.rows(f"SELECT {columns} FROM segment_fragmentation") == [(None, 512, None, 0, None, None)]


def test_an_out_of_memory_entry_is_listed(tiny: TinyStore) -> None:
    tiny.run().add("allocator_events", entry(0, "oom", 0, 900, device_free_bytes=100, frame="f"))
    assert tiny.rows("SELECT bytes, device_free_bytes, frame FROM snapshot_oom") == [(900, 100, "f")]


def test_the_timeline_adds_up_by_category_and_has_one_peak(tiny: TinyStore) -> None:
    rows = [(None, 10, "parameter"), (5, 4, "activation"), (5, 3, "activation"), (9, -7, "activation")]
    names = ("timestamp_ns", "bytes", "category")
    tiny.run().add("memory_timeline", *[{"action": "create", **dict(zip(names, row, strict=True))} for row in rows])
    live = tiny.rows(
        "SELECT category, timestamp_ns, live_bytes FROM memory_timeline_live ORDER BY 1, timestamp_ns NULLS FIRST"
    )
    assert live == [("activation", 5, 7), ("activation", 9, 0), ("parameter", None, 10)]
    assert tiny.rows("SELECT peak_live_bytes, peak_timestamp_ns FROM memory_timeline_peak") == [(17, 5)]


@given(STEPS, st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_peaks_and_compositions_are_those_of_a_walk(steps: list[tuple[bool, int, int]], seed: int) -> None:
    store = emptied().run()
    live: dict[int, int] = {}
    before, running, peak, at_peak = seed, 0, 0, dict[int, int]()
    for position, (_, address, size) in enumerate(steps):
        action = "free_completed" if address in live else "alloc"
        size = live.pop(address, size)
        if action == "alloc":
            live[address] = size
        running += size if action == "alloc" else -size
        store.add("allocator_events", entry(position, action, address, size, frame=str(address)))
        if running > peak:
            peak, at_peak = running, dict(live)
    for size in (before, *live.values()):
        store.add("allocator_blocks", block(512, size))
    if not steps:
        return
    found = store.rows("SELECT live_at_window_start, peak_from_zero_bytes, peak_seeded_bytes FROM snapshot_peaks")
    assert found == [(before, peak, before + peak)]
    held = store.rows("SELECT frame, bytes FROM snapshot_composition WHERE moment = 'peak' AND known ORDER BY frame")
    assert held == sorted((str(address), size) for address, size in at_peak.items())
    assert store.rows("SELECT coalesce(sum(bytes), 0) FROM snapshot_composition WHERE moment = 'peak'") == [
        (before + peak,)
    ]


CHANGES = st.lists(st.tuples(st.none() | st.integers(0, 4), st.integers(-9, 9), st.sampled_from("ab")), max_size=15)


@given(CHANGES)
@settings(max_examples=30, deadline=None)
def test_the_timeline_is_that_of_a_walk(changes: list[tuple[int | None, int, str]]) -> None:
    store = emptied().run()
    names = ("timestamp_ns", "bytes", "category")
    for change in changes:
        store.add("memory_timeline", {"action": "create", **dict(zip(names, change, strict=True))})
    times = sorted({time for time, _, _ in changes}, key=lambda time: -1 if time is None else time)
    reached = [sum(b for t, b, _ in changes if _at(t) <= _at(time)) for time in times]
    expected = [(max(reached), times[reached.index(max(reached))])] if changes else []
    assert store.rows("SELECT peak_live_bytes, peak_timestamp_ns FROM memory_timeline_peak") == expected
    for category, time, live in store.rows("SELECT category, timestamp_ns, live_bytes FROM memory_timeline_live"):
        assert live == sum(b for t, b, c in changes if c == category and _at(t) <= _at(time))


def _at(time: int | None) -> int:
    return -1 if time is None else time
