"""``planewise schema``."""

from __future__ import annotations

import click

from ...recorder.errors import UsageError
from ..output import OutputFormat, Rows, write_rows
from ..relation_list import relation_columns, relation_list
from .options import format_option


@click.command()
@click.argument("name", required=False)
@format_option()
def schema(name: str | None, output_format: OutputFormat) -> int:
    """The planes and views: all of them, or the columns of one with unit, meaning and the meaning of NULL.

    \b
    Example: planewise schema device_intervals
    """
    known = relation_list()
    if name is None:
        write_rows(Rows.of(known), output_format)
        return 0
    if name not in {row["name"] for row in known}:
        raise UsageError(f"no plane or view named {name!r}", remedy="planewise schema lists them")
    write_rows(Rows.of(relation_columns(name)), output_format)
    return 0
