"""The catalogue: planewise.duckdb, every view over the store's absolute path, for any DuckDB client."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb

from ..recorder.errors import InputRefused
from ..recorder.planes import PLANES
from .database import connect
from .fsio import sync_file, sync_folder, temporary_sibling
from .results import prepare_results, result_source
from .results_index import EMPTY_BATCH, RESULTS, results_folder
from .run_folder import KEY_GLOB
from .store_format import EMPTY_RUN
from .tables import TABLES
from .untrusted import once_more, sql_fault
from .views import create_input_tables, create_input_views, create_views, quote, views_digest

CATALOGUE = "planewise.duckdb"
"""Name of the catalogue in a store."""

RESULT_SCHEMA = "results"
"""Schema of the catalogue over what was computed once for each published run (docs/architecture.md, "Results")."""

_OVER_RESULTS = (
    *("series_outer_wall_time", "series_tensor_stats", "series_gradients", "campaign_status", "campaign_counts"),
    *(f"comparison_{part}" for part in ("summary", "statistics", "reasons", "pairs", "tensor_stats", "samples")),
)
_MANIFEST = '{"run_id": "VARCHAR", "files": [{"bytes": "BIGINT"}]}'
_NOTE = "Which views this catalogue holds, and for which store; planewise catalog rebuilds it."


def build_catalog(root: Path, *, force: bool = False) -> Path:
    """Build the catalogue of the store at ``root`` unless it is current, or always with ``force``; returns its path.

    It is stale when the views or the store's absolute path have changed. It is built under a temporary name and put
    in place by one rename, so a reader meets the old one or the new one. Raises :class:`InputRefused` for a store that
    cannot be written.
    """
    path = root / CATALOGUE
    if not force and catalogue_is_current(root):
        return path
    if not os.access(root, os.W_OK):
        raise InputRefused(
            "the store cannot be written, so its catalogue cannot be built",
            source=root,
            code="store_not_writable",
            remedy="ask with planewise sql, which then holds the views in memory",
        )
    temporary = temporary_sibling(path)
    try:
        once_more(lambda: _build(temporary, root))
        sync_file(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return path


def catalogue_connection(root: Path) -> duckdb.DuckDBPyConnection:
    """A connection to the current catalogue of the store at ``root``, read-only.

    Where the catalogue is stale and the store cannot be written, the same views in memory.
    """
    path = root / CATALOGUE
    if not catalogue_is_current(root):
        if not os.access(root, os.W_OK):
            con = connect()
            once_more(lambda: _fill_or_refuse(con, root))
            return con
        build_catalog(root, force=True)
    return connect(str(path), read_only=True)


def catalogue_is_current(root: Path) -> bool:
    """True when the store at ``root`` has a catalogue of these views and of its own path."""
    path = root / CATALOGUE
    if not path.exists():
        return False
    try:
        with connect(str(path), read_only=True) as con:
            rows = con.execute("SELECT views_digest, store_path FROM planewise_catalogue").fetchall()
    except duckdb.Error:
        return False  # Of an older DuckDB, or damaged: it holds nothing that cannot be built again.
    return rows == [(views_digest(), str(root))]


def _build(path: Path, root: Path) -> None:
    path.unlink(missing_ok=True)
    with connect(str(path)) as con:
        _fill_or_refuse(con, root)


def _fill_or_refuse(con: duckdb.DuckDBPyConnection, root: Path) -> None:
    try:
        _fill(con, root)
    except duckdb.Error as error:
        raise sql_fault(error) from error


def _fill(con: duckdb.DuckDBPyConnection, store_root: Path) -> None:
    from .. import __version__

    root = str(store_root)
    create_input_tables(con)
    create_views(con, comments=True)
    if os.access(store_root, os.W_OK):
        prepare_results(con, store_root)
    keeps_results = (results_folder(store_root) / EMPTY_BATCH).is_dir()
    if keeps_results:
        _create_result_views(con, store_root)
    create_input_views(con, _sources(root))
    if keeps_results:
        _comment_results(con)
    con.execute("CREATE TABLE planewise_catalogue (views_digest VARCHAR, store_path VARCHAR, built_by VARCHAR)")
    con.execute("INSERT INTO planewise_catalogue VALUES (?, ?, ?)", [views_digest(), root, f"planewise {__version__}"])
    con.execute(f"COMMENT ON TABLE planewise_catalogue IS {quote(_NOTE)}")


def _create_result_views(con: duckdb.DuckDBPyConnection, root: Path) -> None:
    """The relations that are kept per run, and the views of a campaign over them: DuckDB looks a view's names up in
    its own schema first, so that the same definitions answer from results."""
    con.execute(f"CREATE SCHEMA {RESULT_SCHEMA}")
    for name in RESULTS:
        source = result_source(con, name, [f"{results_folder(root)}/*"])
        con.execute(f'CREATE VIEW {RESULT_SCHEMA}."{name}" AS {source}')
    con.execute(f"SET schema = '{RESULT_SCHEMA}'")
    create_views(con, only=_OVER_RESULTS, given=RESULTS, comments=True)
    con.execute("RESET schema")


def _comment_results(con: duckdb.DuckDBPyConnection) -> None:
    """What the relations of the main schema say of themselves and of their columns holds for what is kept of them."""
    views = "SELECT view_name, comment FROM duckdb_views() WHERE schema_name = 'main' AND view_name IN ?"
    for name, about in con.execute(views, [list(RESULTS)]).fetchall():
        text = f"{about} Published runs alone, as computed once for each."
        con.execute(f'COMMENT ON VIEW {RESULT_SCHEMA}."{name}" IS {quote(text)}')
    columns = (
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE schema_name = 'main' AND table_name IN ?"
    )
    for name, column, about in con.execute(columns, [list(RESULTS)]).fetchall():
        con.execute(f'COMMENT ON COLUMN {RESULT_SCHEMA}."{name}"."{column}" IS {quote(about)}')


def _sources(root: str) -> dict[str, str]:
    """FROM clauses of all inputs, over folders that are named as runs are; a copy or a note beside them is no run.

    A half-written run lies one folder deeper, in tmp/*/, where no pattern reaches. Our own empty file comes first: it
    gives the columns, so that a damaged file stops the queries that read it and not the making of the views.
    """
    sources = {
        name: _parquet(f"{root}/{EMPTY_RUN}/planes/{name}.parquet", f"{root}/*/{KEY_GLOB}/planes/{name}.parquet")
        for name in PLANES
    }
    sources |= {
        name: _parquet(f"{root}/tables/{name}/empty.parquet", f"{root}/tables/{name}/*.parquet") for name in TABLES
    }
    return sources | {"bundles": _bundles(root)}


def _parquet(*patterns: str) -> str:
    # A folder above the store may be named like a Hive partition (x=1); it is no column of ours.
    return f"read_parquet([{', '.join(map(quote, patterns))}], hive_partitioning = false)"


def _bundles(root: str) -> str:
    """The manifests as rows; an unreadable one has NULLs beside its digest, and stops no query."""
    return f"""(
        SELECT manifest.run_id AS run_id, parse_dirpath(filename) AS bundle, sha256(content) AS manifest_sha256,
               len(manifest.files) AS files,
               CAST(list_sum(list_transform(manifest.files, lambda file: file.bytes::HUGEINT)) AS BIGINT) AS bytes
        FROM (
            SELECT filename, content, TRY(from_json(decode(content), {quote(_MANIFEST)})) AS manifest
            FROM read_blob({quote(f"{root}/bundles/{KEY_GLOB}/bundle.json")})
        )
    )"""
