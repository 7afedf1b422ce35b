"""Facts about a foreign run that its trace does not say and the user supplies at ingest (``--identity FILE``).

A foreign trace states no identity and no scope, so it takes no part in a timing verdict. Whoever made it may say what
was run; what is supplied is marked as supplied (``runs.supplied``), fills only what the trace left open, and never
touches a capture of planewise or candle-graph, which speaks for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Meta

from ..ingest.contract import PlaneBatch, batch
from ..ingest.run_metadata import ComparisonIdentity
from ..recorder.errors import InputRefused
from ..recorder.planes import INT64_MAX

NATIVE_FORMATS = ("capture", "candle-trace")
"""Formats that state their own contract; supplied facts are not applied to them."""

_Step = Annotated[int, Meta(ge=0, le=INT64_MAX)]


class SuppliedFacts(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a user may say about a foreign run; every fact is optional.

    ``measured_span`` is the name of the one span that is the measured region, e.g. ``ProfilerStep#3``; the trace must
    hold exactly one of that name. The other names are the columns of the plane ``runs``, ``measurement_scope`` is
    that of its contract.
    """

    correlation_id: str | None = None
    entrypoint: str | None = None
    phase: Literal["train", "infer"] | None = None
    timestamp: str | None = None
    capture_step: _Step | None = None
    warmup_steps: _Step | None = None
    device: str | None = None
    timing_mode: Literal["host", "device_synchronized"] | None = None
    measured_region_device_synchronized: bool | None = None
    rank: _Step | None = None
    world_size: _Step | None = None
    measurement_scope: Literal["unknown", "profiled_work", "production_equivalent"] | None = None
    comparison_identity: ComparisonIdentity | None = None
    measured_span: str | None = None

    def stated(self) -> dict[str, Any]:
        """The facts that were given, by name, as plain values."""
        return {name: value for name, value in msgspec.to_builtins(self).items() if value is not None}


def load_supplied(path: str | Path) -> SuppliedFacts:
    """Read supplied facts from a JSON file. Raises :class:`InputRefused` with the place of what is wrong."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=SuppliedFacts)
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputRefused(
            f"is no file of supplied facts: {error}",
            source=path,
            code="supplied_facts_invalid",
            remedy=f"one JSON object with some of: {', '.join(SuppliedFacts.__struct_fields__)}",
        ) from None


def with_facts(batches: Iterable[PlaneBatch], facts: SuppliedFacts, source: Path) -> Iterator[PlaneBatch]:
    """The batches of one foreign source with the facts filled in, on their way to the store.

    Raises :class:`InputRefused` when the trace says something else than a supplied fact, or holds no span or several
    of the name ``measured_span``.
    """
    measured = 0
    for item in batches:
        if item.plane == "spans" and facts.measured_span is not None:
            table, found = _mark_measured(item.table, facts.measured_span)
            measured += found
            yield PlaneBatch("spans", table)
        elif item.plane == "runs":
            yield _fill_run(item.table, facts, source)
        else:
            yield item
    if facts.measured_span is not None and measured != 1:
        raise InputRefused(
            f"found {measured} spans named {facts.measured_span!r}, expected one: the measured region",
            source=source,
            code="measured_span_ambiguous" if measured else "measured_span_not_found",
            remedy="name a span that the trace holds once",
        )


def _mark_measured(table: Any, name: str) -> tuple[Any, int]:
    chosen = pc.equal(table.column("name"), name)
    place = table.schema.get_field_index("measured")
    marked = pc.or_(table.column("measured"), chosen)
    return table.set_column(place, table.schema.field(place), marked), pc.sum(chosen.cast(pa.int64())).as_py() or 0


def _fill_run(table: Any, facts: SuppliedFacts, source: Path) -> PlaneBatch:
    [row] = table.to_pylist()
    given = facts.stated()
    for name, value in given.items():
        if name == "measurement_scope":
            row["capture_contract"]["measurement_scope"] = value
        elif name == "correlation_id":
            row[name] = value
        elif name != "measured_span":
            _fill(row, name, value, source)
    row["supplied"] = sorted(given)
    return batch("runs", [row])


def _fill(row: dict[str, Any], name: str, value: Any, source: Path) -> None:
    if row[name] is not None and row[name] != value:
        raise InputRefused(
            f"the trace says {name} is {row[name]!r}, supplied was {value!r}",
            source=source,
            code="supplied_conflict",
            remedy=f"leave {name} out, or ingest this trace without the supplied facts",
        )
    row[name] = value
