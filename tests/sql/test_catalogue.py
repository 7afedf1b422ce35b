"""The SQL layer as a catalogue: everything says what it is, and nothing reaches where it must not."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from planewise.pipeline.views import create_input_tables, create_views, inputs, relations
from support import emptied

RELATIONS = {relation.name: relation for relation in relations()}
VIEWS = sorted(name for name, relation in RELATIONS.items() if not relation.is_macro)
MACROS = sorted(RELATIONS.keys() - set(VIEWS))
ONE_PLANE_FOLDERS = ("core", "timing", "memory")
EXCEPTIONS = {("outer_wall_time", "run_health")}
"""What the architecture asks for: a wall time says whether its run qualifies."""


@cache
def commented() -> duckdb.DuckDBPyConnection:
    """Every view with its comments, over empty inputs without any."""
    con = duckdb.connect()
    create_input_tables(con)
    create_views(con, comments=True)
    return con


def rows_of(query: str) -> list[tuple[Any, ...]]:
    return commented().execute(query).fetchall()


def test_every_view_states_its_grain() -> None:
    found = dict(rows_of("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"))
    assert found.keys() == set(VIEWS)
    assert [name for name, comment in found.items() if not re.search(r"\bGrain: .+\.$", comment or "")] == []


def test_every_column_of_every_view_has_a_comment() -> None:
    rows = rows_of(
        "SELECT table_name, column_name FROM duckdb_columns()"
        " WHERE table_name IN (SELECT view_name FROM duckdb_views() WHERE NOT internal) AND coalesce(comment, '') = ''"
    )
    assert sorted(rows) == []


def test_every_macro_has_a_comment() -> None:
    names = ", ".join(f"'{name}'" for name in MACROS)
    found = dict(rows_of(f"SELECT function_name, comment FROM duckdb_functions() WHERE function_name IN ({names})"))
    assert found.keys() == set(MACROS)
    assert [name for name, comment in found.items() if not comment] == []


def test_comments_that_speak_of_time_or_bytes_name_the_unit() -> None:
    rows = rows_of(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE column_name LIKE '%\\_ns' ESCAPE '\\'"
        " AND table_name IN (SELECT view_name FROM duckdb_views() WHERE NOT internal)"
    )
    silent = [row[:2] for row in rows if not re.search("nanosecond|Nanosecond", row[2])]
    assert [name for name in silent if RELATIONS[name[0]].folder in ONE_PLANE_FOLDERS] == []


def test_relations_come_after_what_they_use() -> None:
    order = [relation.name for relation in relations()]
    assert len(order) == len(set(order))
    for relation in relations():
        assert all(order.index(used) < order.index(relation.name) for used in relation.uses), relation.name


def test_no_relation_takes_the_name_of_an_input_table() -> None:
    assert RELATIONS.keys() & inputs().keys() == set()


def test_names_are_lower_case_and_core_is_private() -> None:
    assert [name for name in RELATIONS if not re.fullmatch(r"_?[a-z][a-z0-9_]*", name)] == []
    assert [name for name, relation in RELATIONS.items() if relation.folder == "core" and name[0] != "_"] == []


@pytest.mark.parametrize("folder", ONE_PLANE_FOLDERS)
def test_timing_and_memory_use_the_core_and_themselves_only(folder: str) -> None:
    reached = {
        (relation.name, used)
        for relation in relations()
        for used in relation.uses
        if relation.folder == folder and RELATIONS[used].folder not in {"core", folder}
    }
    assert reached - EXCEPTIONS == set()


def test_private_relations_are_used_in_their_own_folder_unless_they_are_core() -> None:
    outside = {
        (relation.name, used)
        for relation in relations()
        for used in relation.uses
        if used.startswith("_") and RELATIONS[used].folder not in {"core", relation.folder}
    }
    assert {pair for pair in outside if RELATIONS[pair[1]].folder in ONE_PLANE_FOLDERS} == set()


def test_every_view_answers_on_an_empty_store() -> None:
    store = emptied()
    filled = [name for name in VIEWS if store.rows(f'SELECT count(*) FROM "{name}"') != [(0,)]]
    assert [name for name in filled if RELATIONS[name].folder in ONE_PLANE_FOLDERS] == []


def test_the_architecture_names_every_public_view() -> None:
    text = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    public = [name for name in VIEWS if not name.startswith("_")]
    assert [name for name in public if f"`{name}`" not in text] == []
