"""A store on object storage, worked on through a local mirror (docs/scale.md, "Stores on S3")."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb

from ..recorder.errors import Conflict, PlanewiseError, VerificationFailed
from ..recorder.planes import PLANES
from .bundle import verify_bundle
from .database import connect
from .fsio import sync_folder, write_atomic
from .manifest import read_manifest
from .remote import Remote, RemoteBundle
from .run_folder import RunFolder, run_key
from .store import Orphan, Store
from .tables import TABLES
from .views import create_input_tables, create_input_views, create_views, quote, views_digest

ORPHAN_S = 24 * 3600.0
"""Age from which files that no manifest names are orphans."""
_SHARED = "shared"
CACHE = "PLANEWISE_CACHE"
"""Environment variable: the folder that holds mirrors, by default ``planewise`` in the user's cache folder."""


class MirroredStore(Store):
    """A store whose published runs are on object storage.

    Staging, results and the catalogue are those of the mirror, a local store that this machine keeps for the address.
    Bundles are published into the mirror and then, by :meth:`share`, to the storage, where they become true; they are
    fetched, and verified, when somebody asks for them.
    """

    def __init__(self, path: Path, remote: Remote) -> None:
        """Use :meth:`at`."""
        super().__init__(path)
        self.remote = remote

    @classmethod
    def at(cls, url: str, *, create: bool = False) -> MirroredStore:
        """The store at ``s3://BUCKET/PREFIX``; raises as :meth:`Store.open`, and when the storage gives no answer."""
        remote = Remote(url)
        remote.check_format(create=create)
        return cls(Store.open(_mirror(remote.url), create=True).path, remote)

    @property
    def address(self) -> str:
        """The address of the store."""
        return self.remote.url

    def bundles(self) -> list[RunFolder]:
        """The published runs; those that the mirror lacks are fetched first."""
        here = {run.key for run in self.held()}
        for key in self.remote.published():
            if key not in here:
                try:
                    self._fetch(key)
                except (PlanewiseError, OSError) as error:
                    self.faults[key] = str(error)
        return super().bundles()

    def find_bundle(self, run_id: str) -> Path | None:
        """The folder where a run is published, fetched first; nothing is there when it cannot be fetched whole."""
        key = run_key(run_id)
        try:
            known = (self.path / "bundles" / key).is_dir() or self._fetch(key)
        except VerificationFailed as error:
            self.faults[key] = str(error)
            known = True
        return self.path / "bundles" / key if known else None

    def find(self, run_id: str) -> RunFolder | None:
        """The folder of a run, fetched where it is published and not here."""
        return super().find(run_id) or (self._fetch(run_key(run_id)) and super().find(run_id)) or None

    def share(self) -> dict[str, str]:
        """Publish to the storage what the mirror alone has; folder name -> why a bundle could not be.

        A bundle that lost its run id to another is put aside in ``conflicts/`` of the mirror. Raises
        :class:`InputRefused` when the storage gives no answer; the next call goes on from there.
        """
        faults: dict[str, str] = {}
        for run in self.held():
            if (self.path / _SHARED / run.key).exists():
                continue
            try:
                self.remote.publish(run.path)
                self._mark_shared(run.key)
            except (Conflict, VerificationFailed) as error:
                faults[run.key] = str(error)
                if isinstance(error, Conflict):
                    self._put_aside(run.path)
        self.faults |= faults
        return faults

    def refresh_documents(self) -> None:
        """Fetch what the last nights wrote, on whichever machine."""
        for name, md5 in self.remote.documents().items():
            path = self.path / name
            if not path.is_file() or _md5(path) != md5:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomic(path, self.remote.get_document(name))

    def share_documents(self, *, gone: str | None = None) -> None:
        """Write what this night wrote to the storage; of two nights at once the later one stays."""
        if gone is not None:
            self.remote.remove(f"{self.remote.url}/{gone}")
        there = self.remote.documents()
        for folder in ("tables", "campaigns"):
            for path in sorted((self.path / folder).rglob("*")):
                name = path.relative_to(self.path).as_posix()
                if path.is_file() and path.name != "empty.parquet" and there.get(name) != _md5(path):
                    self.remote.put_document(name, path.read_bytes())

    def orphans(self) -> Iterator[Orphan]:
        """What killed and beaten publishers left on the storage; a younger file may be of one that is at work."""
        for address, size, age_s in self.remote.orphans(ORPHAN_S):
            yield Orphan(address, size, age_s / 86_400, partial(self.remote.remove, address))

    def connect(self) -> duckdb.DuckDBPyConnection:
        """A connection to every view over the published runs, reading the storage itself, column by column."""
        bundles = [found for key in self.remote.published() if (found := self.remote.bundle(key)) is not None]
        con = connect()
        con.register_filesystem(self.remote.readable())
        create_input_tables(con)
        create_views(con, comments=True)
        create_input_views(con, self._sources(bundles))
        con.execute("DELETE FROM bundles")
        for one in bundles:
            size = sum(file.bytes for file in one.manifest.files)
            place = f"{self.remote.url}/bundles/{one.key}"
            con.execute(
                "INSERT INTO bundles (run_id, bundle, manifest_sha256, files, bytes) VALUES (?, ?, ?, ?, ?)",
                [one.manifest.run_id, place, one.sha256, len(one.manifest.files), size],
            )
        con.execute("CREATE TABLE planewise_catalogue (views_digest VARCHAR, store_path VARCHAR, built_by VARCHAR)")
        con.execute("INSERT INTO planewise_catalogue VALUES (?, ?, 'planewise')", [views_digest(), self.remote.url])
        return con

    def _sources(self, bundles: list[RemoteBundle]) -> dict[str, str]:
        files: dict[str, list[str]] = {}
        for bundle in bundles:
            for file in bundle.manifest.files:
                folder, _, name = file.path.rpartition("/")
                if folder == "planes" and name.removesuffix(".parquet") in PLANES:
                    files.setdefault(name.removesuffix(".parquet"), []).append(self.remote.file_url(bundle, file.path))
        for name in self.remote.documents():
            folder, _, table = name.rpartition("/")[0].partition("/")
            if folder == "tables" and table in TABLES and name.endswith(".parquet"):
                files.setdefault(table, []).append(f"{self.remote.url}/{name}")
        return {
            name: f"read_parquet([{', '.join(map(quote, urls))}], hive_partitioning = false)"
            for name, urls in files.items()
        }

    def _fetch(self, key: str) -> bool:
        """Bring one bundle here; False when there is none."""
        bundle = self.remote.bundle(key)
        if bundle is None:
            return False
        with self.scratch() as scratch:
            self.remote.fetch(bundle, scratch / key)
            if run_key(verify_bundle(scratch / key).run_id) != key:
                place = f"{self.remote.url}/bundles/{key}"
                raise VerificationFailed("lies under the name of another run", source=place)
            with self.lock():
                target = self.path / "bundles" / key
                if not target.exists():
                    os.rename(scratch / key, target)
                    sync_folder(target.parent)
                    self._mark_shared(key)
        return True

    def _mark_shared(self, key: str) -> None:
        """Note that the bundle here is the one on the storage; without the note it is compared again."""
        folder = self.path / _SHARED
        folder.mkdir(exist_ok=True)
        (folder / key).touch()

    def _put_aside(self, bundle: Path) -> None:
        digest = read_manifest(bundle)[1]
        target = self.path / "conflicts" / f"{bundle.name}-{digest[:16]}"
        target.parent.mkdir(exist_ok=True)
        with self.lock():
            if target.exists():
                shutil.rmtree(bundle)
            else:
                os.rename(bundle, target)
            sync_folder(bundle.parent)


def _mirror(url: str) -> Path:
    cache = os.environ.get(CACHE)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache or Path(base) / "planewise") / f"mirror-{hashlib.sha256(url.encode()).hexdigest()[:16]}"


def _md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
