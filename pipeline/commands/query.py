"""``planewise query``."""

from __future__ import annotations

from pathlib import Path

import click

from ..bundle import refuse_output_inside_bundle
from ..inputs import open_input
from ..output import OutputFormat, Rows, write_document, write_rows
from ..query import KINDS, MAX_LIMIT, PAGE_ROWS, run_query
from .options import format_option, input_argument, note, output_option

_KINDS_HELP = "\b\nKinds:\n" + "\n".join(f"  {name:<18} {kind.about}" for name, kind in KINDS.items())


@click.command(epilog=_KINDS_HELP)
@input_argument
@click.option("--kind", required=True, type=click.Choice(list(KINDS)), metavar="KIND", help="What to ask; see below.")
@click.option("--label", help="Only rows with exactly this label.")
@click.option("--label-prefix", help="Only rows whose label starts with this.")
@click.option("--limit", type=int, default=PAGE_ROWS, show_default=True, help=f"Rows of a page, at most {MAX_LIMIT}.")
@click.option(
    "--offset", type=click.IntRange(min=0), default=0, help="First row, from 0; the last page names the next."
)
@click.option("--all", "everything", is_flag=True, help="Every row, without paging.")
@format_option()
@output_option
def query(
    input_path: Path,
    kind: str,
    label: str | None,
    label_prefix: str | None,
    limit: int,
    offset: int,
    everything: bool,
    output_format: OutputFormat,
    output: Path | None,
) -> int:
    """Ask one bounded question of one run: a bundle, a capture folder or a trace file.

    \b
    Example: planewise query bundle/ --kind activations
    """
    if output is not None:
        refuse_output_inside_bundle(output, input_path)
    with open_input(input_path) as opened:
        page = run_query(
            opened.con,
            kind,
            label=label,
            label_prefix=label_prefix,
            limit=None if everything else limit,
            offset=offset,
        )
        if output is not None or output_format is OutputFormat.JSON:
            document = {
                "schema": "planewise/query/1",
                "kind": kind,
                "filter": {"label": label, "label_prefix": label_prefix},
                "input": opened.description,
                "capabilities": opened.packet["capabilities"],
                "result": page.to_json(),
            }
            write_document(document, output)
        else:
            shown = page.brief(kind) if output_format is OutputFormat.TABLE else page
            write_rows(Rows(shown.columns, shown.rows), output_format)
            if len(shown.columns) < len(page.columns):
                note(f"{len(shown.columns)} of {len(page.columns)} columns shown; --format csv or json gives all")
    if page.next_offset is not None:
        note(f"{len(page.rows)} of {page.total} rows; the next page starts at --offset {page.next_offset}")
    return 0
