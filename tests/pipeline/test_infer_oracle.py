"""Against stormlog 0.4.3 itself: the same links and the same accounting, on the example and on random captures.

Needs the extra ``stormlog``; skipped without it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planewise import infer
from planewise.ingest.base import READERS
from planewise.pipeline.cli import run
from planewise.pipeline.infer_columns import Columns
from support import emptied

DATA = Path(__file__).parents[1] / "data" / "stormlog"
accounting = pytest.importorskip("stormlog.infer.correlation_accounting", reason="needs the extra stormlog")
events = pytest.importorskip("stormlog.infer.correlation_events")
capture = pytest.importorskip("stormlog.infer.correlation_capture")
CAPTURES = 1000
FIXED = {"run_id": "r", "session_id": "s", "producer_id": "p", "source": "x", "clock_domain": "c"}
KINDS = {"collection_mode": "active", "provenance": "observed"}


def a_capture(rng: random.Random) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Events of an engine and of a trace, as plain values: few ids, so that they collide."""
    pick, launches, work = rng.choice, ["runtime", "runtime", "gpu"], ["gpu", "gpu", "runtime", "cpu"]
    engine: list[dict[str, Any]] = [{"iteration": number} for number in range(rng.randint(0, 3))]
    trace: list[dict[str, Any]] = []
    for side, most in ((engine, 6), (trace, 8)):
        for _ in range(rng.randint(0, most)):
            start = rng.randint(0, 30)
            side.append(
                {
                    "domain": pick(work if side is trace else launches),
                    "linked": pick([0, 1, 2, 3]) if rng.random() < (0.8 if side is engine else 0.15) else None,
                    "runtime": pick([None, 1, 2]),
                    "cuda": pick([None, 1, 2]),
                    "scope": pick(["a", "a", "a", "b", None]),
                    "device": pick(["G", "G", "G", "H", None]),
                    "pid": pick([1, 1, 1, 2, None]),
                    "host": pick(["h", "h", "h", None]),
                    "clock": pick(["device", "device", "monotonic", "wall"]),
                    "start": start,
                    "end": pick([start, start + rng.randint(0, 9), None]),
                }
            )
    return engine, trace


def built(module: Any, specs: list[dict[str, Any]], side: str) -> tuple[Any, ...]:
    """The events of one side, of our classes or of stormlog's."""
    made = []
    for number, spec in enumerate(specs):
        ref = module.EntityRef("p", f"{side}{number}")
        if "iteration" in spec:
            context = module.CorrelationContext(**FIXED, **KINDS, clock_kind="monotonic")
            own = module.EntityRef("p", f"it{spec['iteration']}")
            made.append(
                module.IterationEvent(context=context, event_id=ref.id, iteration_ref=own, start_ns=1, end_ns=5)
            )
            continue
        place = {"host": spec["host"], "pid": spec["pid"], "device_uuid": spec["device"]}
        context = module.CorrelationContext(**FIXED, **KINDS, clock_kind=spec["clock"], **place)
        linked = None if spec["linked"] is None else module.EntityRef("p", f"it{spec['linked']}")
        made.append(
            module.ActivityReferenceEvent(
                context=context,
                event_id=ref.id,
                activity_ref=ref,
                activity_kind="k",
                activity_domain=spec["domain"],
                attribution_status="unresolved" if linked is None else "linked",
                iteration_ref=linked,
                correlation_scope=None if spec["scope"] is None else module.EntityRef("p", spec["scope"]),
                runtime_correlation_id=spec["runtime"],
                cuda_correlation_id=spec["cuda"],
                start_ns=spec["start"],
                end_ns=spec["end"],
            )
        )
    return tuple(made)


@pytest.fixture(scope="module")
def captures() -> list[tuple[Any, Any]]:
    rng = random.Random(20)
    return [a_capture(rng) for _ in range(CAPTURES)]


def their_links(engine: Any, trace: Any) -> dict[str, str | None]:
    linked = capture.link_trace_activities(built(events, engine, "e"), built(events, trace, "t"))
    return {event.event_id: event.iteration_ref and event.iteration_ref.id for event in linked}


def test_a_thousand_random_captures_are_linked_as_stormlog_links_them(captures: list[tuple[Any, Any]]) -> None:
    for engine, trace in captures:
        linked = infer.link_trace_activities(built(infer, engine, "e"), built(infer, trace, "t"))
        ours = {event.event_id: event.iteration_ref and event.iteration_ref.id for event in linked}  # type: ignore[attr-defined]
        assert ours == their_links(engine, trace)


def filled(captures: list[tuple[Any, Any]]) -> Any:
    """Every capture as one run of a store."""
    rows: dict[str, list[dict[str, Any]]] = {"activities": [], "engine_events": []}
    for number, (engine, trace) in enumerate(captures):
        columns = Columns(lambda context: None)
        columns.add(built(infer, engine, "e"), "engine")
        columns.add(built(infer, trace, "t"), "trace")
        for plane, gathered in (("activities", columns.activities), ("engine_events", columns.events)):
            own = [row for table in gathered.tables for row in table.to_pylist()]
            rows[plane] += [{"run_id": str(number), **row} for row in own]
    tiny = emptied()
    for plane, all_of_them in rows.items():
        tiny.add(plane, *all_of_them)
    return tiny


def owned(graph: Any) -> Iterator[tuple[str, str, str, int, int, int, int | None]]:
    for ref, timing in accounting.account_gpu_time(graph).iterations.items():
        for key, gpu in timing.gpu.items():
            own = (gpu.summed_activity_ns, gpu.busy_ns, gpu.activity_count, timing.elapsed_ns)
            yield (f"p/{ref.id}", key.device_uuid, key.clock_kind, *own)


def test_the_views_give_a_thousand_captures_the_links_and_times_of_stormlog(captures: list[tuple[Any, Any]]) -> None:
    tiny = filled(captures)
    links: dict[str, dict[str, str | None]] = defaultdict(dict)
    query = "SELECT run_id, activity_id, iteration_id FROM activity_links WHERE activity_id LIKE 'p/t%'"
    for number, activity, iteration in tiny.rows(query):
        links[number][activity[2:]] = iteration and iteration[2:]
    times: dict[str, list[Any]] = defaultdict(list)
    columns = "iteration_id, device, clock_kind, summed_ns, busy_ns, activity_count, elapsed_ns"
    for number, *row in tiny.rows(f"SELECT run_id, {columns} FROM iteration_gpu_time WHERE device IS NOT NULL"):
        times[number].append(tuple(row))
    totals: dict[str, list[Any]] = defaultdict(list)
    columns = "run_id, device, clock_kind, summed_ns, busy_ns, activity_count"
    for number, *row in tiny.rows(f"SELECT {columns} FROM device_gpu_time"):
        totals[number].append(tuple(row))
    for number, (engine, trace) in enumerate(captures):
        theirs = built(events, engine, "e"), built(events, trace, "t")
        linked = capture.link_trace_activities(*theirs)
        graph = accounting.resolve_inference_events([*theirs[0], *linked])
        assert links[str(number)] == their_links(engine, trace)
        assert sorted(times[str(number)]) == sorted(owned(graph))
        device = accounting.account_gpu_time(graph).device_totals.items()
        assert sorted(totals[str(number)]) == sorted(
            (key.device_uuid, key.clock_kind, gpu.summed_activity_ns, gpu.busy_ns, gpu.activity_count)
            for key, gpu in device
        )


def test_stormlog_loads_what_we_export_and_accounts_it_alike(tmp_path: Path) -> None:
    assert run(["export", "stormlog", str(DATA / "run.jsonl"), "--output", str(tmp_path / "out")]) == 0
    graph = accounting.resolve_inference_events(events.load_inference_artifact(tmp_path / "out" / "run.jsonl"))
    tiny = emptied()
    for part in READERS["stormlog"].read(DATA / "run.jsonl"):
        tiny.insert(part.plane, part.table)
    columns = "device, clock_kind, summed_ns, busy_ns, activity_count, elapsed_ns"
    ours = tiny.rows(f"SELECT 'p/' || split_part(iteration_id, '/', 2), {columns} FROM iteration_gpu_time")
    assert sorted(ours) == sorted(owned(graph))
