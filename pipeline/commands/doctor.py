"""``planewise doctor``."""

from __future__ import annotations

import click

from ...recorder.errors import CheckFailed, PlanewiseError
from ..doctor import ERROR, examine
from ..output import OutputFormat, Rows, printable, write_rows
from ..stores import StorePlace, open_place
from .options import format_option, note, progress_bar, store_option

COLUMNS = ("severity", "code", "path", "message", "remedy")


@click.command()
@store_option
@click.option("--quick", is_flag=True, help="Of bundles check manifests and sizes only, not every byte.")
@click.option("--fix", is_flag=True, help="Put right what can be without losing anything; every step is told.")
@format_option()
def doctor(store_path: StorePlace, quick: bool, fix: bool, output_format: OutputFormat) -> int:
    """Check a store: bundles, catalogue, tables, permissions, strays, room; nothing is changed without --fix.

    Errors make the exit code 1. --fix rebuilds the catalogue and takes write permission from published files; it
    removes nothing, and it repairs no bundle.

    \b
    Example: planewise doctor --store /data/store --quick
    """
    store = open_place(store_path)
    with progress_bar("verify") as report:
        found = list(examine(store, quick=quick, progress=report))
    rows = [[getattr(finding, name) for name in COLUMNS] for finding in found]
    write_rows(Rows(COLUMNS, [[printable(str(value)) for value in row] for row in rows]), output_format)
    remaining = list(found)
    for finding in found if fix else ():
        if finding.fix is None:
            continue
        try:
            finding.fix()
        except (PlanewiseError, OSError) as error:
            note(f"{finding.code}: {finding.path} could not be put right: {error}")
            continue
        note(f"{finding.code}: {finding.path} was put right")
        remaining.remove(finding)
    errors = sum(finding.severity == ERROR for finding in remaining)
    if not found:
        note("nothing was found")
    if errors:
        raise CheckFailed(f"{errors} errors in {store.path}", remedy="each row says what helps")
    return 0
