"""``planewise catalog``."""

from __future__ import annotations

from pathlib import Path

import click

from ..catalog import build_catalog
from ..store import Store
from .options import note, store_option


@click.command()
@store_option
def catalog(store_path: Path) -> int:
    """Rebuild planewise.duckdb, the views over the store's absolute path; run it after moving a store.

    The file opens in the duckdb shell, DBeaver or a notebook; every view and column carries a comment.

    \b
    Example: planewise catalog --store /data/store && duckdb -readonly /data/store/planewise.duckdb
    """
    store = Store.open(store_path)
    path = build_catalog(store.path, force=True)
    note(f"wrote {path}")
    return 0
