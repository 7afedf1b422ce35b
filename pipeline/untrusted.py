"""SQL from elsewhere: one SELECT, or one predicate, over a locked connection; and whose fault it is when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import duckdb

from ..recorder.errors import InputRefused, PlanewiseError, UsageError
from .output import Rows
from .views import quote

Answer = TypeVar("Answer")

_VANISHED = "file_vanished"


@dataclass(frozen=True)
class Members:
    """The runs a predicate selects, in ascending order: those with a complete capture, and the others.

    Failed and interrupted captures have no sample and take no part in a comparison; whoever asks is told of them.
    """

    complete: tuple[str, ...]
    left_out: tuple[str, ...]


def lock_down(con: duckdb.DuckDBPyConnection, folders: Iterable[str | Path]) -> None:
    """From now on this connection, and every other to its database in this process, reads ``folders`` and nothing else.

    It writes no file, attaches, installs and loads nothing, sees no Python variable, and can change no setting.
    """
    [(locked,)] = con.execute("SELECT current_setting('lock_configuration')").fetchall()
    if locked:
        return
    allowed = ", ".join(quote(f"{folder}/") for folder in folders)
    con.execute(f"SET allowed_directories = [{allowed}]")
    con.execute("SET enable_external_access = false")
    con.execute("SET python_enable_replacements = false")
    con.execute("SET lock_configuration = true")


def run_untrusted(con: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyConnection:
    """Execute one SELECT of an untrusted text on a catalogue connection, which it first locks down to the store.

    Rows come as they are fetched, so a fault in their values raises ``duckdb.Error`` then (see :func:`sql_fault`).
    Raises :class:`UsageError` for anything but one SELECT, and what :func:`sql_fault` makes of DuckDB's errors.
    """
    try:
        return con.execute(_one_select(con, query))
    except duckdb.Error as error:
        raise sql_fault(error) from error


def untrusted_relation(con: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyRelation:
    """The same as a relation, which is computed when it is read; raises as :func:`run_untrusted`."""
    try:
        return con.sql(_one_select(con, query).query)
    except duckdb.Error as error:
        raise sql_fault(error) from error


def _one_select(con: duckdb.DuckDBPyConnection, query: str) -> duckdb.Statement:
    """Lock the connection down to its store, and give the one SELECT that the text is."""
    [(root,)] = con.execute("SELECT store_path FROM planewise_catalogue").fetchall()
    lock_down(con, [root])
    statements = con.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        found = ", ".join(statement.type.name for statement in statements) or "none"
        raise UsageError(
            f"only one SELECT is accepted, and a store is never written by SQL; found {len(statements)} "
            f"statements ({found})",
            code="sql_not_one_select",
            remedy="open planewise.duckdb in the duckdb shell for anything else",
        )
    return statements[0]


def fetch_untrusted(con: duckdb.DuckDBPyConnection, query: str) -> Rows:
    """The rows of one untrusted SELECT, the first of them already here, so that no fault comes after its output began.

    A run that is published meanwhile moves from one folder to another; the query is then run once more. Raises what
    :func:`run_untrusted` raises.
    """

    def begun() -> Rows:
        rows = Rows.fetch(run_untrusted(con, query))
        values = iter(rows.values)
        try:
            first = list(islice(values, 1))
        except duckdb.Error as error:
            raise sql_fault(error) from error
        return Rows(rows.columns, chain(first, values))

    return once_more(begun)


def once_more(read: Callable[[], Answer]) -> Answer:
    """What ``read`` returns, tried a second time when a file vanished under the first, as publishing a run does."""
    try:
        return read()
    except InputRefused as error:
        if error.code != _VANISHED:
            raise
    return read()


def members_where(con: duckdb.DuckDBPyConnection, where: str) -> Members:
    """The runs of the view ``runs`` that a SQL predicate selects.

    The text can only be one expression: it is handed to DuckDB as the filter of a relation, never pasted into a
    statement. What it may read is the connection's matter (:func:`lock_down`). Raises :class:`UsageError` when it is
    no such predicate, :class:`InputRefused` when the runs cannot be read.
    """
    return once_more(lambda: _members_where(con, where))


def _members_where(con: duckdb.DuckDBPyConnection, where: str) -> Members:
    try:
        chosen = con.table("runs").filter(where).project("run_id, outcome = 'complete'").order("run_id").fetchall()
    except duckdb.Error as error:
        fault = sql_fault(error)
        if not isinstance(fault, UsageError):
            raise fault from error
        raise UsageError(
            f"the predicate cannot be used: {str(error).strip()}",
            source=where,
            code="bad_predicate",
            remedy="give one SQL condition over the columns of the view runs",
        ) from error
    complete = tuple(run_id for run_id, is_complete in chosen if is_complete)
    return Members(complete, tuple(run_id for run_id, is_complete in chosen if not is_complete))


def sql_fault(error: duckdb.Error) -> PlanewiseError:
    """Whose fault a DuckDB error is: the data's when a file cannot be read, else the query's."""
    text = str(error).strip()
    unreadable = isinstance(error, duckdb.IOException) or (
        isinstance(error, duckdb.InvalidInputException | duckdb.SerializationException) and ".parquet" in text
    )
    if unreadable:
        return InputRefused(
            f"the data cannot be read: {text}",
            code=_VANISHED if "No such file or directory" in text else "unreadable_data",
            remedy="planewise verify names a damaged bundle; a run that was just being published is there next time",
        )
    return UsageError(text, code="sql_refused")
