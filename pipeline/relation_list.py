"""What can be queried: every plane, table and view with the comments that the catalogue itself carries."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import duckdb

from ..recorder.planes import PLANES
from .database import connect
from .views import create_input_views, create_views, inputs, relations


def catalogue(only: Collection[str] | None = None) -> duckdb.DuckDBPyConnection:
    """An in-memory connection with empty inputs and the SQL layer (or what ``only`` needs), all as commented views."""
    con = connect()
    for name, table in inputs().items():
        con.register("_empty", table.schema.empty_table())
        con.execute(f'CREATE TABLE "_input_{name}" AS FROM _empty')
        con.unregister("_empty")
    create_input_views(con, {name: f'"_input_{name}"' for name in inputs()})
    create_views(con, only=only, comments=True)
    return con


def relation_list() -> list[dict[str, Any]]:
    """Every plane, input table and public view or macro: kind, name and meaning."""
    with catalogue() as con:
        comments = dict(con.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall())
        comments |= dict(
            con.execute("SELECT DISTINCT function_name, comment FROM duckdb_functions() WHERE NOT internal").fetchall()
        )
    listed = [{"kind": "plane" if name in PLANES else "table", "name": name} for name in inputs()]
    listed += [
        {"kind": "macro" if relation.is_macro else relation.folder, "name": relation.name}
        for relation in sorted(relations(), key=lambda relation: (relation.folder, relation.name))
        if not relation.name.startswith("_")
    ]
    return [{**row, "about": comments.get(row["name"])} for row in listed]


def relation_columns(name: str) -> list[dict[str, Any]]:
    """The columns of one plane, table or view in order: name, type, and meaning with unit and meaning of NULL."""
    with catalogue([name]) as con:
        rows = con.execute(
            "SELECT column_name, data_type, comment FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index",
            [name],
        ).fetchall()
    return [{"column": column, "type": type_, "about": comment} for column, type_, comment in rows]
