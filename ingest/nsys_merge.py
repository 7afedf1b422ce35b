"""Issues and ledgers of several files of one run as one, in the order in which the files were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from .contract import PlaneBatch
from .fates import Fates


def merged(files: Iterable[Fates], run_id: str) -> Iterator[PlaneBatch]:
    """The issue rows and the ledgers of all files; ``seq`` counts through them."""
    tables: dict[str, list[Any]] = defaultdict(list)
    for fates in files:
        for part in fates.batches(run_id):
            tables[part.plane].append(part.table)
    for plane, parts in tables.items():
        table = pa.concat_tables(parts)
        place = table.schema.get_field_index("seq")
        seq = pa.array(range(table.num_rows), pa.int64())
        yield PlaneBatch(plane, table.set_column(place, table.schema.field(place), seq))
