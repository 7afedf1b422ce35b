"""Loads the SQL layer: one file of ``sql/`` is one relation, named as the file.

A file holds ``--`` comments, one SELECT (a view) or one CREATE MACRO, and the COMMENT ON statements of that relation.
Files are ordered by the relations they name, so no file says what it depends on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable

import duckdb

from ..recorder.planes import PLANES, Plane
from .tables import TABLES

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOISE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)


@dataclass(frozen=True)
class Relation:
    """One relation of the SQL layer: its name, its folder under ``sql/``, and its statements in order."""

    name: str
    folder: str
    definition: str
    comments: tuple[str, ...]
    uses: frozenset[str]

    @property
    def is_macro(self) -> bool:
        """True when the file declares a macro instead of a view."""
        return self.definition.lower().startswith("create")

    @property
    def create_statement(self) -> str:
        """The statement that creates the relation."""
        return self.definition if self.is_macro else f"CREATE OR REPLACE VIEW {self.name} AS {self.definition}"


def inputs() -> Mapping[str, Plane]:
    """The tables that views read: every plane, and the input tables of :mod:`.tables`."""
    return {**PLANES, **TABLES}


@lru_cache(maxsize=1)
def relations() -> tuple[Relation, ...]:
    """Every relation of the SQL layer, each after the relations it names.

    Raises ``ValueError`` when a file is not one relation with its comments, or when relations name each other in a
    circle.
    """
    root = resources.files(__package__.rpartition(".")[0]) / "sql"
    files = sorted(_sql_files(root, ""), key=lambda item: item[0])
    names = {name for name, _, _ in files}
    return _ordered([_parse(name, folder, text, names) for name, folder, text in files])


@lru_cache(maxsize=1)
def views_digest() -> str:
    """``sha256:`` and 64 hex digits over the whole SQL layer: the version of the views that made a result."""
    digest = hashlib.sha256()
    for relation in relations():
        for statement in (relation.create_statement, *relation.comments):
            digest.update(statement.encode())
            digest.update(b"\0")
    return f"sha256:{digest.hexdigest()}"


def create_views(
    con: duckdb.DuckDBPyConnection,
    *,
    only: Collection[str] | None = None,
    stored: Collection[str] = (),
    given: Collection[str] = (),
    comments: bool = False,
) -> None:
    """Create the views and macros over the input tables of ``con``.

    Parameters
    ----------
    only:
        Relations that are wanted; they come with what they name. Default: all.
    stored:
        Views to compute now and keep as tables, because many queries will ask for them. They do not follow later
        changes of the inputs.
    given:
        Relations that are there already, in the current schema or in the main one: they are not made, nor what they
        name.
    comments:
        Also store the comments, for a catalogue that people read.
    """
    con.execute("BEGIN")
    for relation in relations() if only is None else _needed(only, given):
        keep = relation.name in stored and not relation.is_macro
        con.execute(f"CREATE TABLE {relation.name} AS {relation.definition}" if keep else relation.create_statement)
        if comments:
            con.execute("; ".join(relation.comments))
    con.execute("COMMIT")


def _needed(names: Collection[str], given: Collection[str]) -> list[Relation]:
    wanted = set(names)
    for relation in reversed(relations()):
        if relation.name in wanted and relation.name not in given:
            wanted |= relation.uses
    return [relation for relation in relations() if relation.name in wanted and relation.name not in given]


def create_input_tables(con: duckdb.DuckDBPyConnection, names: Iterable[str] | None = None) -> None:
    """Create empty input tables, in their declared types, for the given names (default: all)."""
    declared = inputs()
    for name in declared if names is None else names:
        empty = declared[name].schema.empty_table()
        con.register("_empty", empty)
        con.execute(f'CREATE TABLE "{name}" AS FROM _empty')
        con.unregister("_empty")


def create_input_views(con: duckdb.DuckDBPyConnection, sources: Mapping[str, str]) -> None:
    """Create each named input as a view over a FROM-clause expression, with the comments of its declaration.

    It may take the place of an empty table. Creating a view binds all that it reads, so the views over many files are
    created over empty tables first: that opens no file.
    """
    declared = inputs()
    tables = {name for (name,) in con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    for name, source in sources.items():
        if name in tables:
            con.execute(f'DROP TABLE "{name}"')
        table = declared[name]
        columns = ", ".join(f'"{column}"' for column in table.column_names)
        con.execute(f'CREATE OR REPLACE VIEW "{name}" AS SELECT {columns} FROM {source}')
        con.execute(f'COMMENT ON VIEW "{name}" IS {quote(table.doc)}')
        for column in table.columns:
            unit = f" Unit: {column.unit}." if column.unit else ""
            con.execute(f'COMMENT ON COLUMN "{name}"."{column.name}" IS {quote(column.doc + unit)}')


def quote(text: str) -> str:
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _sql_files(root: Traversable, folder: str) -> Iterable[tuple[str, str, str]]:
    for entry in root.iterdir():
        if entry.is_dir():
            yield from _sql_files(entry, entry.name)
        elif entry.name.endswith(".sql"):
            yield entry.name.removesuffix(".sql"), folder, entry.read_text(encoding="utf-8")


def _parse(name: str, folder: str, text: str, names: set[str]) -> Relation:
    statements = [statement.query.strip().rstrip(";").strip() for statement in duckdb.extract_statements(text)]
    if not statements:
        raise ValueError(f"sql/{folder}/{name}.sql: no statement")
    definition, *comments = statements
    if any(not _bare(comment).lower().startswith("comment on") for comment in comments):
        raise ValueError(f"sql/{folder}/{name}.sql: more than one relation; expected one SELECT or macro and COMMENTs")
    definition = _strip_leading_comments(definition)
    if definition.lower().startswith("create") and not re.match(
        rf"create (or replace )?macro {name}\b", definition, re.I
    ):
        raise ValueError(f"sql/{folder}/{name}.sql: expected a macro named {name}")
    uses = frozenset(_WORD.findall(_bare(definition))) & names - {name}
    return Relation(name, folder, definition, tuple(comments), uses)


def _bare(text: str) -> str:
    return _NOISE.sub(" ", text).strip()


def _strip_leading_comments(text: str) -> str:
    while text.startswith("--"):
        text = text.partition("\n")[2].lstrip()
    return text


def _ordered(found: list[Relation]) -> tuple[Relation, ...]:
    pending = {relation.name: relation for relation in found}
    if len(pending) != len(found):
        raise ValueError("sql/: two files declare one relation")
    done: dict[str, Relation] = {}
    while pending:
        ready = [relation for relation in pending.values() if relation.uses <= done.keys()]
        if not ready:
            raise ValueError(f"sql/: these relations name each other in a circle: {', '.join(sorted(pending))}")
        for relation in ready:
            done[relation.name] = pending.pop(relation.name)
    return tuple(done.values())
