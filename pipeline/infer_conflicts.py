"""Which rows of an append are new, and which speak against what is there (correlation capture, 4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ..recorder.errors import Conflict
from .infer_columns import Columns, Gathered
from .infer_index import Index


def fresh_rows(index: Index, number: int, columns: Columns) -> tuple[list[Any], list[Any]]:
    """Activities and other events that neither the artifact nor an earlier row of the append has, as tables.

    Their identities are added to the index under ``number``. Raises :class:`Conflict` for an event id or an entity
    that is there with other content.
    """
    kinds = [columns.activities, columns.events]
    events = np.concatenate([np.zeros(0, np.uint64), *(keys for kind in kinds for keys in kind.event_keys)])
    entities = np.concatenate([np.zeros(0, np.uint64), *(keys for kind in kinds for keys in kind.entity_keys)])
    facts = np.concatenate([np.zeros(0, np.uint64), *(own for kind in kinds for own in kind.facts)])
    fresh = np.ones(len(facts), bool)
    added = []
    for what, keys in (("event id", events), ("entity", entities)):
        first, known = _firsts(keys), np.zeros(len(keys), bool)
        of_keys, theirs = index.facts_of(keys)
        _refuse_other(what, columns, of_keys & (theirs != facts))
        _refuse_other(what, columns, facts[first] != facts)
        known |= of_keys | (first != np.arange(len(keys)))
        added.append((keys[~known], facts[~known]))
        fresh &= ~known
    if len(facts):
        index.add_facts(number, np.concatenate([k for k, _ in added]), np.concatenate([f for _, f in added]))
    split = sum(len(own) for own in columns.activities.facts)
    return _kept(columns.activities, fresh[:split]), _kept(columns.events, fresh[split:])


def _firsts(keys: Any) -> Any:
    """For each place, the first place with the same key."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first[inverse]


def _refuse_other(what: str, columns: Columns, wrong: Any) -> None:
    if not wrong.any():
        return
    place = int(np.flatnonzero(wrong)[0])
    tables = [*columns.activities.tables, *columns.events.tables]
    ids = pa.chunked_array([chunk for table in tables for chunk in table.column("event_id").chunks], pa.string())
    raise Conflict(
        f"event {ids[place].as_py()!r:.80} gives its {what} another content than an event before it",
        code="conflicting_event",
        remedy="an event id and an entity stand for one fact; give the other fact its own",
    )


def _kept(gathered: Gathered, fresh: Any) -> list[Any]:
    tables, start = [], 0
    for table in gathered.tables:
        own = fresh[start : start + table.num_rows]
        start += table.num_rows
        tables.append(table if own.all() else table.filter(pa.array(own)))
    return [table for table in tables if table.num_rows]
