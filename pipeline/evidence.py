"""Evidence packets: what one run shows, how far it may be believed, and which views said so (protocol 7.7).

A packet holds conclusions: totals, extrema, rankings. Every list in it is bounded and says its total; the rows behind
it are in the planes beside it, where ``planewise query`` and ``planewise sql`` find them.

Numbers in a packet are exact. Recorded values and sums of them are JSON integers as long as they fit 64 signed bits; a
sum that does not is a decimal string, and byte-nanoseconds are one always.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import duckdb

from ..recorder.errors import PlanewiseError
from . import evidence_claims as claims
from . import evidence_parts as parts
from .evidence_rows import QUERIES, RUNS, Row, RunRows
from .packet import SCHEMA, encode_packet
from .views import views_digest

__all__ = ["SCHEMA", "build_packets", "encode_packet"]


def build_packets(con: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (run id, evidence packet) for every run of ``con``, in the order of run ids.

    ``con`` holds every plane and view; it is only read. The number of queries does not depend on the number of runs.
    A packet holds JSON values only, and lists in the form of :func:`.evidence_parts.bounded`. ``graph`` is absent
    unless the capture is complete and structurally valid, and ``tensor_stats`` when there are none.

    Raises
    ------
    InputRefused
        Two nodes of a run's graph have one id (protocol 4.3). That run has no packet. It is raised after the packets
        of all other runs; when several runs are refused, the first is raised and its notes name the others.
    """
    refused: list[PlanewiseError] = []
    digest = views_digest()
    with ExitStack() as stack:
        runs = stack.enter_context(closing(RunRows(con, RUNS)))
        streams = {name: stack.enter_context(closing(RunRows(con, query))) for name, query in QUERIES.items()}
        for run in runs:
            run_id = run["run_id"]
            rows = {name: stream.take(run_id) for name, stream in streams.items()}
            try:
                packet = _packet(run, rows, digest)
            except PlanewiseError as error:
                refused.append(error)
            else:
                yield run_id, packet
    _raise_first(refused)


def _packet(run: Row, rows: parts.Rows, digest: str) -> dict[str, Any]:
    capabilities = parts.states(rows["capabilities"])
    valid = run["structurally_valid"] and run["capture_complete"]
    graph = parts.graph(run, rows) if valid else None
    packet: dict[str, Any] = {
        "schema": SCHEMA,
        "views_digest": digest,
        "source": {"format": run["source_format"], "digest": run["source_digest"]},
        "provenance": parts.provenance(run),
        "health": parts.health(run, rows),
        "capabilities": capabilities,
        "findings": claims.findings(graph, capabilities),
        "facts": [],
        "gaps": claims.gaps(parts.bounded(rows["gaps"])),
    }
    if graph is not None:
        packet["graph"] = graph
    if rows["tensor_stats"]:
        packet["tensor_stats"] = rows["tensor_stats"][0]
    packet |= {
        "timing": parts.timing(run, rows),
        "memory": parts.memory(rows),
        "activations": parts.activations(rows),
        "gpu": parts.gpu(),
    }
    packet["facts"] = claims.facts(packet, run["outer_wall_time_ns"])
    return packet


def _raise_first(refused: list[PlanewiseError]) -> None:
    if refused:
        for error in refused[1:]:
            refused[0].add_note(f"also refused: {error}")
        raise refused[0]
