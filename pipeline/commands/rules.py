"""``planewise rules``."""

from __future__ import annotations

from pathlib import Path

import click

from ...recorder.errors import UsageError
from ..output import OutputFormat, Rows, write_rows
from ..rules import IN_FORCE, load_rules, reset_rules
from ..stores import StorePlace, open_place, open_store
from .options import format_option, note, store_option


@click.command()
@click.argument("table", type=click.Choice(sorted(IN_FORCE)))
@store_option
@click.option(
    "--load", type=click.Path(path_type=Path, dir_okay=False), help="CSV file whose rules replace all others."
)
@click.option("--reset", is_flag=True, help="Put the built-in rules in force again.")
@format_option()
def rules(table: str, store_path: StorePlace, load: Path | None, reset: bool, output_format: OutputFormat) -> None:
    """Show or replace the rules that give device work its class, or that tell which spans are steps.

    Patterns are those of SQL's LIKE, letter case ignored; an empty cell matches everything. The first rule that matches
    decides. Views follow at once; what was published keeps its bytes.

    \b
    Examples:
      planewise rules device_classes --store /data/store --format csv > classes.csv
      planewise rules device_classes --store /data/store --load classes.csv
    """
    if load is not None and reset:
        raise UsageError("--load and --reset exclude each other", remedy="give one of them")
    store = open_place(store_path)
    if load is not None:
        note(f"{load_rules(store, table, load)} rules are in force in place of all others")
    elif reset:
        reset_rules(store, table)
        note("the built-in rules are in force")
    with open_store(store_path) as opened:
        relation = opened.sql(f"FROM {IN_FORCE[table]} ORDER BY ALL")
        write_rows(Rows(tuple(relation.columns), relation.fetchall()), output_format)
