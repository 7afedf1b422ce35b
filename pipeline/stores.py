"""Opens a store by its place: a local folder, or an address on object storage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from .store import Store

if TYPE_CHECKING:
    import duckdb

S3 = "s3://"
StorePlace: TypeAlias = Path | str
"""Where a store is: a folder, or the text ``s3://BUCKET/PREFIX``."""


def is_remote(place: StorePlace) -> bool:
    """True for an address on object storage."""
    return isinstance(place, str) and place.startswith(S3)


def open_place(place: StorePlace, *, create: bool = False) -> Store:
    """The store at a place; raises what :meth:`Store.open` raises, and when a storage gives no answer."""
    if isinstance(place, str) and place.startswith(S3):
        from .mirrored import MirroredStore  # An extra.

        return MirroredStore.at(place, create=create)
    return Store.open(place, create=create)


class OpenStore:
    """A store open for queries; ``sql`` gives DuckDB relations, with ``.pl()``, ``.arrow()`` and ``.df()``.

    ``.df()`` needs pandas, which planewise does not install.
    """

    def __init__(self, store: Store) -> None:
        """Use :func:`open_store`."""
        self.store = store
        self.con = store.connect()

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Run one query over the planes and views of every run of the store."""
        return self.con.sql(query)

    def close(self) -> None:
        """Close the connection; relations made from it end with it."""
        self.con.close()

    def __enter__(self) -> OpenStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(path: StorePlace) -> OpenStore:
    """Open an existing store for queries; raises what :func:`open_place` raises."""
    return OpenStore(open_place(path))
