"""The catalogue file: every view over the store, for any DuckDB client, and safe for untrusted SQL."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from store_support import published, store_with

from planewise.pipeline import catalog as catalog_module
from planewise.pipeline.catalog import build_catalog
from planewise.pipeline.store import Store
from planewise.pipeline.untrusted import run_untrusted
from planewise.pipeline.views import inputs, relations
from planewise.recorder.errors import UsageError


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    """What another process reads from the catalogue with DuckDB alone."""
    code = (
        "import duckdb, sys, json; con = duckdb.connect(sys.argv[1], read_only=True)\n"
        "print(json.dumps(con.execute(sys.argv[2]).fetchall()))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(path), sql], capture_output=True, text=True, check=True
    )
    return [tuple(row) for row in json.loads(done.stdout)]


def test_another_process_reads_the_catalogue_with_duckdb_alone(tmp_path: Path) -> None:
    path = build_catalog(store_with(tmp_path, "r1").path)
    assert query(path, "SELECT run_id, count(*) FROM spans GROUP BY ALL") == [("r1", 5)]
    assert query(path, "SELECT run_id FROM run_health") == [("r1",)]


def test_an_empty_store_has_every_input_and_view_and_no_rows(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", create=True).connect() as con:
        for name in inputs():
            assert con.execute(f'SELECT count(*) FROM "{name}"').fetchall() == [(0,)], name
        known = {row[0] for row in con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()}
    assert known >= {*inputs(), *(relation.name for relation in relations() if not relation.is_macro)}


def test_every_column_of_an_input_carries_its_comment(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s", create=True).connect() as con:
        bare = con.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND table_name IN "
            f"({', '.join(repr(name) for name in inputs())})"
        ).fetchall()
    assert bare == []


def test_half_written_runs_in_tmp_are_no_rows(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    with store.scratch() as scratch:
        shutil.copytree(store.staged()[0].path, scratch / "run")
        with store.connect() as con:
            assert con.execute("SELECT count(*) FROM runs").fetchall() == [(1,)]


def test_a_current_catalogue_is_kept_and_force_builds_it_again(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    first = build_catalog(store.path).stat().st_ino
    assert build_catalog(store.path).stat().st_ino == first
    assert build_catalog(store.path, force=True).stat().st_ino != first
    assert [entry.name for entry in store.path.glob(".*tmp*")] == []


def test_a_moved_store_gets_a_new_catalogue(tmp_path: Path) -> None:
    store = store_with(tmp_path, "r1")
    build_catalog(store.path)
    store.path.rename(tmp_path / "moved")
    with Store.open(tmp_path / "moved").connect() as con:
        assert con.execute("SELECT run_id FROM runs").fetchall() == [("r1",)]


def test_other_views_and_a_damaged_file_make_the_catalogue_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_with(tmp_path, "r1")
    path = build_catalog(store.path)
    monkeypatch.setattr(catalog_module, "views_digest", lambda: "sha256:other")
    assert query(build_catalog(store.path), "SELECT views_digest FROM planewise_catalogue") == [("sha256:other",)]
    path.write_bytes(b"no database")
    assert query(build_catalog(store.path), "SELECT count(*) FROM runs") == [(1,)]


@pytest.mark.parametrize("name", ["it's", "x=1", "a{b,c}", "sp ace", "\u00e9\u4e03", "semi;colon --", '"q"'])
def test_a_strange_store_path_is_only_a_path(tmp_path: Path, name: str) -> None:
    store = store_with(tmp_path / name, "r1")
    with store.connect() as con:
        assert con.execute("SELECT run_id FROM runs").fetchall() == [("r1",)]
        run_untrusted(con, "SELECT count(*) FROM spans")
        assert con.fetchall() == [(5,)]


def test_bundles_lists_the_manifests_by_the_digest_of_their_bytes(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    content = (bundle / "bundle.json").read_bytes()
    files = json.loads(content)["files"]
    with Store.open(bundle.parent.parent).connect() as con:
        rows = con.execute("SELECT * FROM bundles").fetchall()
    size = sum(file["bytes"] for file in files)
    assert rows == [("r1", str(bundle), hashlib.sha256(content).hexdigest(), len(files), size)]


def test_a_damaged_manifest_is_a_row_of_nulls_and_stops_no_query(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    (bundle / "bundle.json").write_bytes(b"\xff{")
    with Store.open(bundle.parent.parent).connect() as con:
        rows = con.execute("SELECT run_id, bundle, manifest_sha256, files, bytes FROM bundles").fetchall()
    assert rows == [(None, str(bundle), hashlib.sha256(b"\xff{").hexdigest(), None, None)]


def test_rows_of_an_input_table_are_read_from_its_folder(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "s", create=True)
    planned = (
        "SELECT 'c' AS campaign_id, 'e' AS entrypoint, 0 AS position, 1 AS capture_step, 'b' AS bundle, 'r' AS run_id"
    )
    duckdb.sql(planned).write_parquet(str(store.path / "tables" / "campaign_planned" / "c.parquet"))
    with store.connect() as con:
        assert con.execute("SELECT campaign_id, run_id FROM campaign_planned").fetchall() == [("c", "r")]


REFUSED = [
    "SELECT 1; SELECT 2",
    "",
    "SELEC",
    "COPY (SELECT 1) TO '{store}/x.csv'",
    "COPY (SELECT 1) TO '{outside}/x.csv'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{store}/x.csv'",
    "CREATE TABLE t (a INT)",
    "DROP VIEW runs",
    "INSERT INTO planewise_catalogue VALUES ('a', 'b', 'c')",
    "SET threads = 1",
    "ATTACH '{outside}/x.duckdb'",
    "INSTALL httpfs",
    "PRAGMA database_list",
    "FROM '{outside}/secret.csv'",
    "FROM read_text('{outside}/secret.csv')",
    "FROM read_text('{store}/../secret.csv')",
    "FROM read_csv('{store}/tables/link.csv')",
    "FROM parquet_metadata('{outside}/secret.csv')",
    "FROM sniff_csv('{outside}/secret.csv')",
    "EXPORT DATABASE '{store}/copy'",
    "LOAD '{outside}/x.duckdb_extension'",
    "CREATE MACRO m() AS 1",
    "SELECT * FROM query('COPY (SELECT 1) TO ''{store}/x.csv''')",
    "UPDATE planewise_catalogue SET store_path = '/'",
    "DELETE FROM planewise_catalogue",
    "VACUUM",
    "CHECKPOINT",
    "BEGIN TRANSACTION",
    "FROM secret",
    "SELECT nonsense FROM runs",
]


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One store for every untrusted query; its catalogue is built once, and a secret lies beside it."""
    folder = tmp_path_factory.mktemp("untrusted")
    (folder / "secret.csv").write_text("key\n42\n")
    store = store_with(folder, "r1")
    (store.path / "tables" / "link.csv").symlink_to(folder / "secret.csv")
    build_catalog(store.path)
    return store


@pytest.mark.parametrize("sql", REFUSED)
def test_untrusted_sql_that_is_no_plain_query_is_refused_and_writes_nothing(untrusted: Store, sql: str) -> None:
    outside = untrusted.path.parent
    before = sorted(outside.rglob("*"))
    secret = duckdb.sql("SELECT 42")
    assert secret
    with untrusted.connect() as con, pytest.raises(UsageError):
        run_untrusted(con, sql.format(store=untrusted.path, outside=outside)).fetchall()
    assert sorted(outside.rglob("*")) == before


@pytest.mark.parametrize(
    "sql", ["FROM runs", "DESCRIBE spans", "SUMMARIZE spans", "WITH a AS (SELECT 1) FROM a -- end;"]
)
def test_untrusted_queries_run(untrusted: Store, sql: str) -> None:
    with untrusted.connect() as con:
        assert run_untrusted(con, sql).fetchall()
        assert run_untrusted(con, sql).fetchall()
