"""Rows on disk until the whole file was read, because its last keys and its latest event may concern its first row."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

BATCH_ROWS = 100_000


class Spill:
    """One temporary Arrow stream per name, written first and read back in the same order; gone on exit.

    ``folder`` is the temporary folder, for what else of the trace has to lie on disk.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="planewise-kineto-")
        self.folder = Path(self._folder.name)
        self._writers: dict[str, tuple[Any, Any]] = {}
        self.rows: dict[str, int] = {}

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()
        self._folder.cleanup()

    def add(self, name: str, table: Any) -> None:
        """Append the rows of a table; all tables of a name have one schema."""
        if not table.num_rows:
            return
        if name not in self._writers:
            sink = pa.OSFile(str(self._path(name)), "wb")
            self._writers[name] = (pa.ipc.new_stream(sink, table.schema), sink)
            self.rows[name] = 0
        self.rows[name] += table.num_rows
        self._writers[name][0].write_table(table, max_chunksize=BATCH_ROWS)

    def read(self, name: str) -> Iterator[Any]:
        """The tables of a name, at most ``BATCH_ROWS`` rows each; nothing more can be added to any name."""
        self._close()
        if name in self.rows:
            with pa.OSFile(str(self._path(name)), "rb") as source, pa.ipc.open_stream(source) as stream:
                for batch in stream:
                    yield pa.Table.from_batches([batch])

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _close(self) -> None:
        for writer, sink in self._writers.values():
            writer.close()
            sink.close()
        self._writers.clear()
