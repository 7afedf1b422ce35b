"""Reader of what nsys writes as Parquet: folders of recipes, and exports with one file per table (parquetdir)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ..recorder.errors import InputRefused
from .contract import PlaneBatch
from .fates import Fates
from .foreign import ForeignRun, foreign_run_id
from .nsys_csv import text_source
from .nsys_merge import merged
from .nsys_parquet import column_names, is_recipe, is_tables, parquet_pieces, recipe_files, tables_as_database
from .nsys_report_columns import RANGES, header_of
from .nsys_report_rows import ReportRows
from .nsys_report_source import Source
from .nsys_report_text import starts_report
from .nsys_sqlite import NsysSqliteReader
from .nsys_unpack import unpacked
from .source import source_digest

_ANALYSIS = ".nsys-analysis"
_ABOUT = frozenset({"thread-metadata", "system-metadata", "device-metadata", "files", "analysis_info"})
"""Files of a recipe that describe the run."""


class NsysRecipeReader:
    """Reads folders of Parquet files of Nsight Systems."""

    name = "nsys-recipe"
    doc = "Nsight Systems recipe output or parquetdir export, folder of Parquet files"

    def detect(self, path: Path) -> bool:
        """True for a folder of nothing but a recipe's output, or of an export's tables."""
        try:
            return path.is_dir() and (is_tables(path) or is_recipe(path))
        except OSError:
            return False

    def read(self, path: Path) -> Iterator[PlaneBatch]:
        """Yield the planes; raises :class:`InputRefused` for a folder that cannot be read or holds no report."""
        path = Path(path)
        digest = source_digest(path)
        try:
            if is_tables(path):
                with tables_as_database(path) as database:
                    yield from NsysSqliteReader().planes(path, digest, database, self.name)
            else:
                yield from _Recipe(path, digest).batches()
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            if not _is_damage(error):
                raise InputRefused(f"cannot be read: {error}"[:300], source=path, code="unreadable") from None
            message = f"a Parquet file cannot be read: {str(error)[:200]}"
            raise InputRefused(message, source=path, code="damaged_parquet", remedy="copy the folder again") from None


def _is_damage(error: Exception) -> bool:
    """True for what damaged Parquet raises; pyarrow says so with an OSError of no number, too."""
    return not isinstance(error, OSError) or error.errno is None


class _Recipe:
    """The output of one recipe while it is read."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path = path
        self._digest = digest
        self._run_id = foreign_run_id(path, digest)
        self._rows = ReportRows(self._run_id)
        self._fates: list[Fates] = []
        self._tags: dict[str, str] = {}
        self._reports = 0

    def batches(self) -> Iterator[PlaneBatch]:
        files = recipe_files(self._path)
        damaged = ""
        with unpacked(files) as plain:
            texts = {file for file in files if plain[file].is_file() and _is_report(plain[file])}
            has_ranges = any(_holds_ranges(plain[file]) for file in texts)
            for file in files:
                fates = Fates(file.relative_to(self._path).as_posix())
                self._fates.append(fates)
                if plain[file] != file and (damage := plain.damage.get(file)):
                    fates.note("damaged_stream", "data_loss", damage)
                try:
                    yield from self._file(file, plain[file], fates, file in texts, has_ranges)
                except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
                    if not _is_damage(error):
                        raise
                    damaged = f"{file.name} cannot be read to its end: {str(error)[:200]}"
                    fates.note("damaged_parquet", "data_loss", damaged)
        if not self._reports and damaged:
            raise InputRefused(damaged, source=self._path, code="damaged_parquet", remedy="copy the folder again")
        if not self._reports:
            raise InputRefused("holds no report of a recipe", source=self._path, code="no_report")
        yield from self._rows.rest()
        yield from merged(self._fates, self._run_id)
        yield self._run()

    def _file(self, file: Path, plain: Path, fates: Fates, text: bool, has_ranges: bool) -> Iterator[PlaneBatch]:
        if text:
            self._reports += 1
            yield from self._rows.read(text_source(plain, fates, self._run_id, _report_name(file)))
        elif file.suffix == ".parquet":
            yield from self._parquet(file, fates, has_ranges)
        elif file.name.endswith(_ANALYSIS):
            fates.keep("analysis", None)
            self._tags |= _analysis(file)
        else:
            fates.leave_out("file", "not_read")

    def _parquet(self, file: Path, fates: Fates, has_ranges: bool) -> Iterator[PlaneBatch]:
        names, records = column_names(file)
        if header_of(names, _report_name(file)) is not None:
            self._reports += 1
            yield from self._rows.read(self._source(file, fates, has_ranges))
        elif file.stem in _ABOUT:
            fates.keep(file.stem, None, records)
            self._tags |= _devices(file) if file.stem == "device-metadata" else {}
        else:
            message = f"the {records} rows of a table with the columns {', '.join(names)[:100]} are not read"
            fates.drop(file.stem, "table_not_read", message, severity="info", records=records)

    def _source(self, file: Path, fates: Fates, has_ranges: bool) -> Source:
        def pieces() -> Any:
            return parquet_pieces(file, _report_name(file))

        return Source(fates, self._run_id, file.stem, pieces, _report_name(file), host_ranges=not has_ranges)

    def _run(self) -> PlaneBatch:
        rows: dict[str, int] = {}
        for fates in self._fates:
            rows = {plane: rows.get(plane, 0) + fates.rows[plane] for plane in {*rows, *fates.rows}}
        run = ForeignRun(
            run_id=self._run_id,
            schema="nsys/recipe",
            source_format=NsysRecipeReader.name,
            source_digest=self._digest,
            producer="NVIDIA Nsight Systems",
            source_version=self._tags.get("recipe.RecipeJsonVersion"),
            time_unit="ns",
            host_clock_id=self._run_id,
            tags=self._tags,
            data_lost=any(fates.data_lost for fates in self._fates),
        )
        return run.batch(self._path, rows)


def _report_name(file: Path) -> str:
    """The report of a file: that of its folder for ``trace.parquet`` and its like, else that of its name."""
    stem = file.name.split(".")[0]
    return file.parent.name if stem in ("trace", "stats", "all_stats") else stem.removeprefix("report_")


def _is_report(plain: Path) -> bool:
    return plain.suffix == ".csv" and starts_report(plain)


def _holds_ranges(plain: Path) -> bool:
    """True for a text whose first table is of ranges themselves."""
    source = text_source(plain, Fates(plain.name), "")
    header = next((piece.header for piece in source.pieces() if piece.header is not None), None)
    return header is not None and header.shape == RANGES


def _analysis(file: Path) -> dict[str, str]:
    """The plain facts that a recipe states of itself."""
    try:
        facts = msgspec.json.decode(file.read_bytes())
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return {}
    if not isinstance(facts, dict):
        return {}
    return {f"recipe.{key}": value for key, value in facts.items() if isinstance(value, str)}


def _devices(file: Path) -> dict[str, str]:
    """Names of the GPUs of the machine, by their number there."""
    names = pq.read_schema(file).names
    columns = [name for word in ("'id'", "'name'") for name in names if "'TARGET_INFO_GPU'" in name and word in name]
    if len(columns) != 2:
        return {}
    rows = pq.read_table(file, columns=columns).to_pylist()
    return {f"gpu.{row[columns[0]]}": str(row[columns[1]]) for row in rows if row[columns[1]] is not None}
