"""The laws of the device views on real traces, and foreign runs from ingest to a sealed bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planewise.ingest.base import READERS
from planewise.pipeline.cli import run
from support import TinyStore, emptied

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
FILES = [
    "kineto/hta_mi250_rocm62_kineto.json.gz",
    "kineto/hta_sampled_rank0.json.gz",
    "kineto/hta_sampled_rank1.json.gz",
    "kineto/hta_nccl_data.json.gz",
    "kineto/hta_trace_compare_base.json.gz",
    "kineto/hta_cpu_only_rank34.json.gz",
]
LAWS = {
    "the sets of a clock fill its window": """
        SELECT run_id FROM device_time_breakdown GROUP BY run_id, device, clock_id, window_ns
        HAVING sum(duration_ns) <> window_ns""",
    "what is not idle is busy": """
        SELECT run_id FROM device_clock_busy JOIN device_time_breakdown AS cut USING (run_id, device, clock_id)
        GROUP BY run_id, device, clock_id, busy_ns
        HAVING coalesce(sum(cut.duration_ns) FILTER (class_count > 0), 0) <> busy_ns""",
    "gaps are what is idle": """
        SELECT run_id FROM device_time_breakdown AS cut
        LEFT JOIN (
            SELECT run_id, device, clock_id, sum(duration_ns) AS gap_ns FROM idle_gaps GROUP BY ALL
        ) USING (run_id, device, clock_id)
        WHERE classes = 'idle' AND cut.duration_ns IS DISTINCT FROM gap_ns""",
    "alone and beside others are the union": """
        SELECT run_id FROM device_class_time WHERE exclusive_ns + overlapped_ns <> union_ns OR union_ns > total_ns""",
    "operations and the rest are all device time": """
        SELECT run_id FROM (SELECT run_id, sum(duration_ns) AS total_ns FROM device_intervals GROUP BY run_id)
        JOIN (SELECT run_id, sum(total_ns) AS op_ns FROM op_device_time GROUP BY run_id) USING (run_id)
        JOIN (SELECT run_id, sum(total_ns) AS name_ns FROM op_name_device_time GROUP BY run_id) USING (run_id)
        JOIN (SELECT run_id, sum(total_ns) AS kernel_ns FROM kernel_summary GROUP BY run_id) USING (run_id)
        WHERE total_ns <> op_ns OR total_ns <> name_ns OR total_ns <> kernel_ns""",
    "the ledger is balanced": "SELECT run_id FROM ingest_audit WHERE NOT balanced",
    "no foreign run breaks a structural rule": "SELECT run_id FROM health_issues",
    "nothing is claimed": "SELECT run_id FROM capabilities WHERE level IN ('complete', 'invalid')",
}


def sources() -> list[Path]:
    found = [CORPUS / name for name in FILES]
    if not all(path.exists() for path in found):
        pytest.skip("no ../shared/corpus beside the repository")
    return found


@pytest.fixture(scope="module")
def corpus() -> TinyStore:
    store = emptied()
    for path in sources():
        for item in READERS["kineto"].read(path):
            store.insert(item.plane, item.table)
    return store


@pytest.mark.parametrize("law", LAWS)
def test_law_holds_on_real_traces(corpus: TinyStore, law: str) -> None:
    assert corpus.rows(LAWS[law]) == []


def test_busy_time_is_that_of_the_table_of_right_values(corpus: TinyStore) -> None:
    oracle = json.loads((CORPUS / "oracle_gpu_busy.json").read_text())
    expected = sorted(union["union_ns"] for name in FILES for union in oracle.get(name, {}).values())
    assert [busy for (busy,) in corpus.rows("SELECT busy_ns FROM device_clock_busy ORDER BY busy_ns")] == expected


def test_two_ranks_are_a_job_once_their_user_names_it(corpus: TinyStore) -> None:
    assert corpus.rows("FROM rank_stragglers") == []
    named = "UPDATE runs SET correlation_id = 'job' WHERE source_name LIKE 'hta_sampled%'"
    corpus.con.execute(named)
    query = "SELECT subject, rank, duration_deviation_ns FROM rank_stragglers WHERE kind = 'step' ORDER BY 1, 2"
    assert corpus.rows(query) == [
        ("ProfilerStep#551", 0, -296000.0),
        ("ProfilerStep#551", 1, 296000.0),
        ("ProfilerStep#552", 0, -3855500.0),
        ("ProfilerStep#552", 1, 3855500.0),
    ]


def test_a_foreign_run_goes_from_its_file_to_a_verified_bundle(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    source = str(next(path for path in sources() if "compare_base" in path.name))
    for command in (["ingest", source], ["qualify"], ["publish"]):
        assert run([*command, "--store", store]) == 0, command
    [bundle] = (tmp_path / "store" / "bundles").iterdir()
    assert run(["verify", str(bundle)]) == 0
    packet = json.loads((bundle / "evidence.json").read_text())
    levels = {field: state["level"] for field, state in packet["capabilities"].items()}
    assert levels["structural_trace"] == levels["outer_wall_time"] == "unavailable"
    assert packet["findings"] == []
