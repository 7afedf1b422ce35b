"""What the declarations of planes are made of: types, columns, and planes themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

PLANE_VERSION = 1
"""Version of all plane schemas together, stored in each file's metadata; raised when a column changes its meaning,
its type or its name. A new plane or a new column that may be NULL does not raise it."""

STRING = pa.string()
#: Strings that repeat. Dictionary encoding is a matter of the file (see ``shards``), the logical type stays a string.
INT = pa.int64()
UNSIGNED = pa.uint64()
"""Addresses and stream handles, which use all 64 bits; never a size or a count."""
FLOAT = pa.float64()
BOOL = pa.bool_()
STRINGS = pa.list_(pa.field("element", pa.string(), nullable=False))
INTS = pa.list_(pa.field("element", pa.int64(), nullable=False))


@dataclass(frozen=True)
class Column:
    """One column of a table: its Arrow type, whether NULL may stand in it, its unit and its meaning."""

    name: str
    type: Any
    doc: str
    nullable: bool = False
    unit: str | None = None
    since: int = 1
    origin: str = "any"
    """``foreign``: only foreign traces fill it. ``native``: NULL in foreign traces alone; what planewise or
    candle-graph recorded has a value. ``any``: neither."""

    @cached_property
    def field(self) -> Any:
        """The Arrow field; doc, unit and since travel as field metadata."""
        metadata = {"doc": self.doc, "since": str(self.since)}
        if self.unit:
            metadata["unit"] = self.unit
        return pa.field(self.name, self.type, nullable=self.nullable, metadata=metadata)


@dataclass(frozen=True)
class Plane:
    """One plane: a name, the meaning of one row, and its columns in order."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    version: int = PLANE_VERSION

    @cached_property
    def recorded_columns(self) -> tuple[Column, ...]:
        """The columns that a recorder writes, each NULL only where a recording may leave it out."""
        own = (column for column in self.columns if column.origin != "foreign")
        return tuple(replace(c, nullable=c.nullable and c.origin != "native") for c in own)

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema; its metadata names the plane and its version."""
        metadata = {"planewise.plane": self.name, "planewise.plane_version": str(self.version)}
        return pa.schema([column.field for column in self.columns], metadata=metadata)

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


def col(name: str, type_: Any, doc: str, *, null: bool = False, unit: str | None = None) -> Column:
    """A column; ``null`` lets NULL stand in it, which then means "not recorded"."""
    return Column(name, type_, doc, nullable=null, unit=unit)


def foreign(name: str, type_: Any, doc: str, *, unit: str | None = None) -> Column:
    """A column that only foreign traces fill; NULL in everything planewise records."""
    return Column(name, type_, doc, nullable=True, unit=unit, origin="foreign")


def native(name: str, type_: Any, doc: str, *, unit: str | None = None) -> Column:
    """A column that has a value in everything planewise records and may be NULL in foreign traces."""
    return Column(name, type_, doc, nullable=True, unit=unit, origin="native")


def ns(name: str, doc: str, *, null: bool = False) -> Column:
    """A time or a duration in nanoseconds."""
    return col(name, INT, doc, null=null, unit="ns")


def size(name: str, doc: str, *, null: bool = False) -> Column:
    """A number of bytes."""
    return col(name, INT, doc, null=null, unit="bytes")


def plane(name: str, doc: str, *columns: Column) -> Plane:
    """A plane; the two columns that all planes share come first."""
    key = (
        col("run_id", STRING, "The run this row belongs to."),
        col("seq", INT, "Position of the record in its source; orders rows that share a timestamp."),
    )
    return Plane(name, doc, key + columns)
