"""``planewise catalog``."""

from __future__ import annotations

import click

from ..catalog import build_catalog
from ..stores import StorePlace, open_place
from .options import note, store_option


@click.command()
@store_option
def catalog(store_path: StorePlace) -> int:
    """Rebuild planewise.duckdb, the views over the store's absolute path; run it after moving a store.

    The file opens in the duckdb shell, DBeaver or a notebook; every view and column carries a comment.

    \b
    Example: planewise catalog --store /data/store && duckdb -readonly /data/store/planewise.duckdb
    """
    store = open_place(store_path)
    store.bundles()  # Of a store on S3, those that are not on this machine are fetched.
    path = build_catalog(store.path, force=True)
    note(f"wrote {path}")
    return 0
