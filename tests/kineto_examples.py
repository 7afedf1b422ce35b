"""A small trace with one of everything, for the tests of the kineto reader."""

from __future__ import annotations

from typing import Any

from kineto_support import text_of, x

KERNEL = {"device": 0, "stream": 7, "context": 1, "correlation": 31, "External_id": 2}

EVENTS: list[Any] = [
    {"ph": "M", "name": "process_name", "ts": 0, "pid": 1, "tid": 0, "args": {"name": "python"}},
    x("user_annotation", "ProfilerStep#1", "100.000", 50.5, External_id=1),
    x("cpu_op", "aten::mul", 110.001, 20.25, External_id=2, Sequence_number=5, Input_Dims=[[2, 3], []]),
    x("cpu_op", "aten::empty", 112, 3, External_id=3),
    x("cuda_runtime", "cudaLaunchKernel", 115.5, 4.125, correlation=31, External_id=2, cbid=211),
    x("kernel", "mul_kernel", 118.75, 10, pid=0, tid=7, **KERNEL),
    x("gpu_memcpy", "Memcpy HtoD", 130, 2, pid=0, tid=7, **KERNEL | {"correlation": 32}, bytes=4096),
    x("gpu_user_annotation", "ProfilerStep#1", 118, 20, pid=0, tid=7, External_id=1),
    x("python_function", "train.py(3): step", 105, 40, Python_id=1),
    x("cuda_sync", "Stream Sync", 120, 5, pid=0, tid=7, stream=7),
    x("alien", "what is this", 120, 5),
    {"ph": "s", "id": 31, "pid": 1, "tid": 1, "ts": 115.5, "cat": "ac2g", "name": "ac2g"},
    {"ph": "f", "id": 31, "pid": 0, "tid": 7, "ts": 118.75, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    {"ph": "B", "name": "outer", "pid": 1, "tid": 2, "ts": 100},
    {"ph": "B", "name": "inner", "pid": 1, "tid": 2, "ts": 101},
    {"ph": "E", "name": "inner", "pid": 1, "tid": 2, "ts": 104.5},
    {"ph": "E", "pid": 1, "tid": 2, "ts": 110},
    {"ph": "C", "name": "GPU 0 power", "pid": 0, "ts": 120, "args": {"watts": 300.5, "text": "high"}},
    x("cuda_profiler_range", "mul_kernel", 140, 2, pid=0, tid=0, **{"flops.sum": 12}),
    {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": 113,
        "args": {
            "Total Reserved": 2048,
            "Total Allocated": 512,
            "Bytes": 512,
            "Addr": 2**63 + 512,
            "Device Id": 0,
            "Device Type": 1,
        },
    },
    {
        "ph": "i",
        "s": "t",
        "name": "[memory]",
        "pid": 1,
        "tid": 1,
        "ts": 114,
        "args": {"Device Type": 0, "Device Id": -1, "Bytes": -64},
    },
    x("cpu_op", "record_param_comms", 141, 3, Collective_name="allreduce", dtype="Float", In_msg_nelems=8),
    {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 160},
]

TEXT = text_of(EVENTS, baseTimeNanoseconds=1_000_000, distributedInfo={"backend": "nccl", "rank": 1, "world_size": 4})
