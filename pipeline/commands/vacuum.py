"""``planewise vacuum``."""

from __future__ import annotations

import click

from ..output import OutputFormat, Rows, write_rows
from ..stores import StorePlace, open_place
from ..vacuum import KEEP_DAYS, find_waste
from ..vacuum import vacuum as vacuum_store
from .options import format_option, note, store_option

COLUMNS = ("path", "kind", "bytes", "days")


@click.command()
@store_option
@click.option(
    "--keep-days",
    type=click.FloatRange(min=0),
    default=KEEP_DAYS,
    show_default=True,
    help="Keep results of other views that were written to in so many days.",
)
@click.option("--dry-run", is_flag=True, help="List what would go, and remove nothing.")
@format_option()
def vacuum(store_path: StorePlace, keep_days: float, dry_run: bool, output_format: OutputFormat) -> int:
    """Remove results of other views, and what killed processes left half-made among them.

    Of a store on S3 also the files that belong to no bundle and are older than a day. Bundles, staged runs and the
    results of these views are never touched; whatever goes can be computed again.

    \b
    Example: planewise vacuum --store /data/store --dry-run
    """
    store = open_place(store_path)
    found = find_waste(store, keep_days=keep_days) if dry_run else vacuum_store(store, keep_days=keep_days)
    rows = [{"path": str(one.path), "kind": one.kind, "bytes": one.bytes, "days": round(one.days, 1)} for one in found]
    write_rows(Rows.of(rows, COLUMNS), output_format)
    size = sum(one.bytes for one in found)
    note(f"{'would remove' if dry_run else 'removed'} {len(found)} places, {size:,} bytes")
    return 0
