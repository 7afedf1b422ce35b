"""Published bundles on object storage, where nothing can be renamed: the manifest comes last, and once.

Layout under the prefix of a store::

    store.json                           as in a local store
    bundles/<key>/bundle.json            the manifest, put only where none is; from then on the bundle is published
    bundles/<key>/<digest>/<path>        its files, under 16 hex digits of the manifest's sha256
    tables/, campaigns/                  what the last night wrote, as in a local store

Readers start from manifests alone. What a killed or beaten writer left belongs to no manifest and is swept. Needs the
extra ``s3``; credentials, region and endpoint are those of the AWS environment variables and files.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ..recorder.errors import Conflict, InputRefused, PlanewiseError, UsageError, VerificationFailed
from .fsio import sync_tree
from .manifest import MANIFEST, Manifest, is_safe_path, read_manifest
from .run_folder import is_run_key
from .store_format import check_document, format_document, no_store

_RETRIES = {"max_attempts": 5, "mode": "standard"}


@dataclass(frozen=True)
class RemoteBundle:
    """A published bundle: its key, the bytes of its manifest, their sha256, and what they say."""

    key: str
    content: bytes
    sha256: str
    manifest: Manifest


class Remote:
    """The object storage under one ``s3://bucket/prefix``."""

    def __init__(self, url: str) -> None:
        """Raises :class:`UsageError` for an address that is none, or without the extra ``s3``."""
        self.url = url.rstrip("/")
        self._root = self.url.removeprefix("s3://")
        bucket, _, prefix = self._root.partition("/")
        if not bucket or not prefix or any(part in ("", ".", "..") for part in self._root.split("/")):
            raise UsageError(
                f"{url!r} is no place for a store", remedy="name a bucket and a prefix: s3://BUCKET/PREFIX"
            )
        try:
            import s3fs
        except ImportError:
            raise UsageError("a store on S3 needs s3fs", remedy="pip install 'planewise[s3]'") from None
        self._open = partial(s3fs.S3FileSystem, skip_instance_cache=True, config_kwargs={"retries": _RETRIES})
        self.fs = self._open(use_listings_cache=False)

    def check_format(self, *, create: bool) -> None:
        """Raise where there is no store, or one of another version; with ``create`` make one where nothing is."""
        try:
            content = self._get("store.json")
        except FileNotFoundError:
            if not create:
                raise no_store(self.url) from None
            self._put_new("store.json", format_document())
            content = self._get("store.json")
        check_document(content, f"{self.url}/store.json")

    def published(self) -> list[str]:
        """The folder names of all published runs, in order."""
        with self._faults("listed"):
            found = self.fs.find(f"{self._root}/bundles", maxdepth=2)
        places = [name.removeprefix(f"{self._root}/bundles/").split("/") for name in found]
        return sorted(place[0] for place in places if len(place) == 2 and place[1] == MANIFEST and is_run_key(place[0]))

    def bundle(self, key: str) -> RemoteBundle | None:
        """The published run of a folder name, None for none; :class:`VerificationFailed` for a damaged one."""
        try:
            content = self._get(f"bundles/{key}/{MANIFEST}")
        except FileNotFoundError:
            return None
        try:
            manifest = msgspec.json.decode(content, type=Manifest)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise VerificationFailed(
                f"cannot be read: {error}", source=f"{self.url}/bundles/{key}/{MANIFEST}"
            ) from error
        for file in manifest.files:
            if not is_safe_path(file.path):
                raise VerificationFailed(f"names {file.path!r}", source=f"{self.url}/bundles/{key}/{MANIFEST}")
        return RemoteBundle(key, content, hashlib.sha256(content).hexdigest(), manifest)

    def readable(self) -> Any:
        """A file system for many reads of published files: it knows their sizes from one listing."""
        fs = self._open(use_listings_cache=True)
        with self._faults("listed"):
            fs.find(self._root)
        return fs

    def file_url(self, bundle: RemoteBundle, path: str) -> str:
        """The address of one of its files."""
        return f"{self.url}/{_folder(bundle.key, bundle.sha256)}/{path}"

    def publish(self, folder: Path) -> bool:
        """Publish a sealed bundle; False when it was there already, the same.

        Raises :class:`Conflict` when its key is taken by other content, which is then left alone.
        """
        manifest, digest = read_manifest(folder)
        key, content = folder.name, (folder / MANIFEST).read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise VerificationFailed("changed while it was read", source=folder / MANIFEST)
        if (there := self.bundle(key)) is not None:
            return _same(there, digest, folder)
        place = f"{self._root}/{_folder(key, digest)}"
        with self._faults("written"):
            for file in manifest.files:
                self.fs.put_file(str(folder / file.path), f"{place}/{file.path}")
            sizes = {
                name.removeprefix(f"{place}/"): one["size"] for name, one in self.fs.find(place, detail=True).items()
            }
        if wrong := [file.path for file in manifest.files if sizes.get(file.path) != file.bytes]:
            raise VerificationFailed(
                f"{wrong[0]} did not arrive whole; publish again", source=f"{self.url}/bundles/{key}"
            )
        if self._put_new(f"bundles/{key}/{MANIFEST}", content):
            return True
        there = self.bundle(key)
        return there is not None and _same(there, digest, folder)

    def fetch(self, bundle: RemoteBundle, target: Path) -> None:
        """Copy a published bundle into the new folder ``target``, durably; the caller verifies it."""
        target.mkdir()
        for file in bundle.manifest.files:
            path = target / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._faults("read"):
                self.fs.get_file(self.file_url(bundle, file.path), str(path))
            path.chmod(0o444)
        (target / MANIFEST).write_bytes(bundle.content)
        (target / MANIFEST).chmod(0o444)
        sync_tree(target)

    def documents(self) -> dict[str, str]:
        """Path -> md5 of every document of the last nights (tables and campaigns)."""
        found: dict[str, str] = {}
        for place in ("tables", "campaigns"):
            with self._faults("listed"):
                listed = self.fs.find(f"{self._root}/{place}", detail=True)
            found |= {name.removeprefix(f"{self._root}/"): one["ETag"].strip('"') for name, one in listed.items()}
        return {name: etag for name, etag in found.items() if is_safe_path(name)}

    def get_document(self, name: str) -> bytes:
        """The content of a document; raises ``FileNotFoundError``."""
        return self._get(name)

    def put_document(self, name: str, content: bytes) -> None:
        """Write a document, whatever was there."""
        with self._faults("written"):
            self.fs.pipe_file(f"{self._root}/{name}", content)

    def orphans(self, older_than_s: float) -> Iterator[tuple[str, int, float]]:
        """Address, size and age in seconds of every file, so old, that no manifest names."""
        with self._faults("listed"):
            found = self.fs.find(f"{self._root}/bundles", detail=True)
        named: dict[str, str | None] = {}
        for name, one in found.items():
            key, _, rest = name.removeprefix(f"{self._root}/bundles/").partition("/")
            age = time.time() - one["LastModified"].timestamp()
            if rest == MANIFEST or age < older_than_s:
                continue
            if key not in named:
                there = self.bundle(key)
                named[key] = None if there is None else _folder(key, there.sha256)
            if named[key] is None or not name.startswith(f"{self._root}/{named[key]}/"):
                yield f"s3://{name}", one["size"], age

    def remove(self, address: str) -> None:
        """Remove one file, if it is there."""
        with self._faults("removed"), suppress(FileNotFoundError):
            self.fs.rm_file(address)

    def _get(self, name: str) -> bytes:
        with self._faults("read"):
            return bytes(self.fs.cat_file(f"{self._root}/{name}"))

    def _put_new(self, name: str, content: bytes) -> bool:
        """Write where nothing is, in one conditional request; False where something is."""
        try:
            with self._faults("written"):
                self.fs.pipe_file(f"{self._root}/{name}", content, mode="create")
        except FileExistsError:
            return False
        return True

    @contextmanager
    def _faults(self, done: str) -> Iterator[None]:
        """Put into words what the storage answers; that something is not there, or is, passes through."""
        try:
            yield
        except (FileNotFoundError, FileExistsError, PlanewiseError):
            raise
        except Exception as error:  # botocore, aiohttp and s3fs raise what they like.
            raise InputRefused(
                f"could not be {done}: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}",
                source=self.url,
                code="storage_unavailable",
                remedy="check bucket, credentials and AWS_ENDPOINT_URL, then run it again; nothing is half done",
            ) from error


def _folder(key: str, digest: str) -> str:
    return f"bundles/{key}/{digest[:16]}"


def _same(there: RemoteBundle, digest: str, folder: Path) -> bool:
    """False, for a bundle that need not be published again; raises :class:`Conflict` for another."""
    if there.sha256 != digest:
        raise Conflict(
            f"another bundle was published under its run id: manifest {there.sha256[:16]}, this one has {digest[:16]}",
            source=folder,
            remedy="a run id names one recording: give the other one its own id",
        )
    return False
