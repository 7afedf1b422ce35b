"""Classes of device work are data: built-in rules, and a table that takes their place."""

from __future__ import annotations

import pytest
from device_support import traced, work

from support import TinyStore


def class_of(store: TinyStore, category: str | None, name: str | None) -> str:
    work(traced(store), 0, 1, category=category, name=name)
    [(found,)] = store.rows("SELECT class FROM device_work")
    return str(found)


@pytest.mark.parametrize(
    ("category", "name", "expected"),
    [
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", "communication"),
        ("Kernel", "ncclKernel_AllGather_RING_LL_Sum_int8_t(...)", "communication"),
        ("kernel", "rcclGenericKernel", "communication"),
        (None, "hcom_allReduce__123_0", "communication"),
        ("HCCL", "Reduce_Inline", "communication"),
        ("kernel", "hcomX", "compute"),
        ("kernel", "volta_sgemm_128x64_nn", "compute"),
        ("kernel", "void memcpy_like_kernel<float>()", "compute"),
        ("mtia_ccp_events", "batch_matmul", "compute"),
        ("mtia_ccp_events", "dma_request", "memcpy"),
        ("mtiaXccpXevents", "batch_matmul", "other"),
        ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", "memcpy"),
        ("Memcpy", None, "memcpy"),
        ("gpu_memset", "Memset (Device)", "memset"),
        (None, "[CUDA memcpy Device-to-Host]", "memcpy"),
        (None, "[CUDA memset]", "memset"),
        (None, "some work", "other"),
        (None, None, "other"),
    ],
)
def test_built_in_classes(tiny: TinyStore, category: str | None, name: str | None, expected: str) -> None:
    assert class_of(tiny, category, name) == expected


def test_rules_of_the_user_take_the_place_of_all_built_in_rules(tiny: TinyStore) -> None:
    tiny.add("device_classes", {"priority": 1, "name": "%attention%", "class": "attention"})
    assert class_of(tiny, "kernel", "flash_attention_fwd") == "attention"
    assert tiny.rows("SELECT count(*) FROM device_class_rules") == [(1,)]
    work(tiny, 0, 1, name="ncclKernel")
    assert tiny.rows("SELECT class FROM device_work WHERE name = 'ncclKernel'") == [("other",)]


def test_the_smallest_priority_decides_and_a_tie_goes_by_the_name_of_the_class(tiny: TinyStore) -> None:
    for priority, name in ((3, "a"), (2, "c"), (2, "b")):
        tiny.add("device_classes", {"priority": priority, "category": "kernel", "class": name})
    assert class_of(tiny, "kernel", "k") == "b"


def test_every_interval_is_in_device_work_once(tiny: TinyStore) -> None:
    traced(tiny)
    for category, name in ((None, None), (None, "k"), ("kernel", None), ("kernel", "k"), ("kernel", "k")):
        work(tiny, 0, 1, category=category, name=name)
    assert tiny.rows("SELECT count(*), count(DISTINCT seq) FROM device_work") == [(5, 5)]


def test_kernel_summary_by_hand(tiny: TinyStore) -> None:
    # k: [0, 4) [2, 8) [10, 12)   union 10; g: [20, 28)   sums 12 and 8
    traced(tiny)
    for start, duration in ((10, 2), (2, 6), (0, 4)):
        work(tiny, start, duration)
    work(tiny, 20, 8, name="g")
    query = "SELECT name, class, calls, total_ns, min_ns, median_ns, max_ns, busy_ns, share, rank FROM kernel_summary"
    assert tiny.rows(f"{query} ORDER BY rank") == [
        ("k", "compute", 3, 12, 2, 4.0, 6, 10, 0.6, 1),
        ("g", "compute", 1, 8, 8, 8.0, 8, 8, 0.4, 2),
    ]


def test_kernel_summary_keeps_work_without_a_name_and_a_sum_of_zero(tiny: TinyStore) -> None:
    work(traced(tiny), 5, 0, name=None)
    query = "SELECT name, calls, total_ns, busy_ns, share FROM kernel_summary"
    assert tiny.rows(query) == [(None, 1, 0, 0, None)]
