"""What the views say of every published run, computed once and kept as Parquet (docs/architecture.md, "Results").

Results are derived: they are made from verified bundles, may be removed at any time, and are made again when the views
have changed. A batch holds many runs, so that a store of years is read from few files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from .bundle import Receipt, second_pass
from .fsio import sync_folder, temporary_sibling
from .loose import bundle_connection
from .progress import Progress
from .results_index import EMPTY_BATCH, RESULTS, Run, batches, is_sound, known_results, results_folder, write_index
from .store import RunFolder, Store
from .untrusted import sql_fault
from .views import quote

BATCH_BYTES = 256 * 1024 * 1024
"""Parquet bytes of the runs that are computed together; a larger run is computed alone."""

_SHARED = ("run_health", "_measured_closed_spans")


@dataclass(frozen=True)
class Published:
    """A verified bundle: its folder, its run, and the digest of its manifest that results are kept under."""

    path: Path
    receipt: Receipt

    @property
    def identity(self) -> Run:
        """What names its results."""
        return Run(self.receipt.run_id, self.receipt.manifest_sha256)


def make_results(store: Store, bundles: Sequence[Published], *, progress: Progress | None = None) -> list[Path]:
    """The batches that hold the results of ``bundles``, made where there are none; each of its files is as it was made.

    A batch that is damaged, or holds another bundle under one of these run ids, is removed and made again. Raises
    :class:`InputRefused` for planes that cannot be read, :class:`VerificationFailed` for a bundle that changed
    meanwhile, ``OSError`` where nothing can be written.
    """
    remove_unsound(store, bundles)
    known = known_results(store.path)
    missing = [bundle for bundle in bundles if bundle.identity not in known]
    done = 0
    for part in _parts(missing):
        if progress:
            progress(len(bundles) - len(missing) + done, len(bundles), f"{len(part)} runs")
        _make_batch(store, part)
        done += len(part)
    if progress:
        progress(len(bundles), len(bundles), "")
    known = known_results(store.path)
    return sorted({known[bundle.identity] for bundle in bundles})


def compute_results(bundles: Sequence[Published], folder: Path) -> None:
    """Write one file per relation, and the index, into the empty ``folder``; raises as :func:`make_results`."""
    with bundle_connection([bundle.path for bundle in bundles], only=RESULTS) as con:
        try:
            for name in RESULTS:
                _write(con, name, folder / f"{name}.parquet")
                if name in _SHARED:  # What is behind it reads what is written instead of computing it again.
                    con.execute(f'CREATE OR REPLACE VIEW "{name}" AS {result_source(con, name, [str(folder)])}')
        except duckdb.Error as error:
            raise sql_fault(error) from error
    for bundle in bundles:
        second_pass(bundle.path, bundle.receipt, [f"planes/{file.name}" for file in (bundle.path / "planes").iterdir()])
    write_index(folder, [bundle.identity for bundle in bundles])


def prepare_results(con: duckdb.DuckDBPyConnection, root: Path) -> None:
    """Give the store a batch of no runs, in the types of ``con``, so that patterns over all batches match a file.

    Nothing is written when it is there. Raises ``OSError`` where nothing can be written.
    """
    target = results_folder(root) / EMPTY_BATCH
    if target.is_dir():
        return
    made = temporary_sibling(results_folder(root))  # Not in tmp/, where an opened store sweeps away what has no owner.
    made.mkdir(parents=True)
    try:
        for name in RESULTS:
            _write(con, name, made / f"{name}.parquet", "WHERE false")
        write_index(made, [])
        _put_in_place(made, target)
    except OSError:
        if not target.is_dir():  # Otherwise another process was faster.
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def load_results(con: duckdb.DuckDBPyConnection, folders: Sequence[Path], run_ids: Sequence[str]) -> None:
    """Put tables of the results of ``run_ids``, from these batches, in the place of the views that they are of.

    Without any batch the views stay.
    """
    for name in RESULTS if folders else ():
        source = f"{result_source(con, name, [str(folder) for folder in folders])} WHERE run_id IN (SELECT unnest(?))"
        con.execute(f'CREATE TABLE "_results of {name}" AS {source}', [list(run_ids)])
        kind = "VIEW" if con.execute("FROM duckdb_views() WHERE view_name = ?", [name]).fetchone() else "TABLE"
        con.execute(f'DROP {kind} "{name}"')
        con.execute(f'ALTER TABLE "_results of {name}" RENAME TO "{name}"')


def result_source(con: duckdb.DuckDBPyConnection, name: str, folders: Sequence[str]) -> str:
    """A query of the results of a relation that ``con`` has, in its types; ``folders`` may be patterns."""
    files = ", ".join(quote(f"{folder}/{name}.parquet") for folder in folders)
    columns = ", ".join(f'CAST("{column}" AS {type_}) AS "{column}"' for column, type_ in _columns(con, name).items())
    return f"SELECT {columns} FROM read_parquet([{files}], hive_partitioning = false)"


def _columns(con: duckdb.DuckDBPyConnection, name: str) -> Mapping[str, str]:
    return {row[0]: row[1] for row in con.execute(f'DESCRIBE "{name}"').fetchall()}


def _write(con: duckdb.DuckDBPyConnection, name: str, file: Path, condition: str = "") -> None:
    # Parquet has no integers of 128 bits; DuckDB would write doubles for them.
    columns = ", ".join(
        f'"{column}"::DECIMAL(38, 0) AS "{column}"' if type_ == "HUGEINT" else f'"{column}"'
        for column, type_ in _columns(con, name).items()
    )
    query = f'SELECT {columns} FROM "{name}" {condition} ORDER BY ALL'
    con.execute(f"COPY ({query}) TO {quote(str(file))} (FORMAT parquet, COMPRESSION zstd)")


def _make_batch(store: Store, bundles: Sequence[Published]) -> None:
    with store.scratch() as scratch:
        made = scratch / "results"
        made.mkdir()
        compute_results(bundles, made)
        runs = "\n".join(f"{run.run_id}\0{run.manifest_sha256}" for run in (bundle.identity for bundle in bundles))
        target = results_folder(store.path) / hashlib.sha256(runs.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        with store.lock():
            known = known_results(store.path)
            rest = [bundle for bundle in bundles if bundle.identity not in known]
            if len(rest) == len(bundles):
                _put_in_place(made, target)
                return
    if rest:  # Another process made some of them meanwhile, and a run is in one batch alone.
        _make_batch(store, rest)


def _put_in_place(made: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.rename(made, target)
    sync_folder(target.parent)


def _parts(bundles: Sequence[Published]) -> Iterator[list[Published]]:
    part: list[Published] = []
    size = 0
    for bundle in bundles:
        more = RunFolder(bundle.path, published=True).parquet_bytes
        if part and size + more > BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append(bundle)
        size += more
    if part:
        yield part


def remove_unsound(store: Store, bundles: Sequence[Published]) -> None:
    """Remove the batches that are damaged, or that hold another bundle under the run id of one of ``bundles``."""
    wanted = {bundle.receipt.run_id: bundle.identity for bundle in bundles}
    for batch, index in batches(store.path):
        named = [run for run in index.runs if run.run_id in wanted] if index else []
        if index is None or (named and (any(wanted[run.run_id] != run for run in named) or not is_sound(batch, index))):
            remove_batch(store, batch)


def remove_batch(store: Store, batch: Path) -> None:
    """Take one batch out of the store by one rename; what it held is made again by whoever needs it."""
    with store.scratch() as scratch, store.lock():
        if batch.is_dir():
            os.rename(batch, scratch / "results")
            sync_folder(batch.parent)
