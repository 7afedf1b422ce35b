"""The index of a batch of results: which views made it, of which bundles, and what its files were when it was made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from .fsio import sync_tree, write_atomic
from .manifest import size_and_sha256
from .views import views_digest

RESULTS_SCHEMA = "planewise/results/1"
"""Format of the index of a batch."""
RESULTS = (
    *("runs", "tensor_stats", "gradients", "run_health", "_measured_closed_spans", "outer_wall_time", "capabilities"),
    *("device_clock_busy", "live_bytes_peak", "host_label_time", "activation_name_time"),
)
"""The relations that are kept, each after those it is made of."""
EMPTY_BATCH = "empty"
"""Name of the batch that holds no run."""

_INDEX = "index.json"


class Run(msgspec.Struct, frozen=True):
    """One run of a batch: its id, and 64 hex digits over the manifest of the bundle that it was computed from."""

    run_id: str
    manifest_sha256: str


class Index(msgspec.Struct, frozen=True, rename={"format": "schema"}):
    """What index.json of a batch says: the views that made it, its runs, and the sha256 of each of its files."""

    format: str
    views_digest: str
    runs: list[Run]
    files: dict[str, str]


def results_folder(root: Path) -> Path:
    """The folder of all batches that these views made, in the store at ``root``; it need not exist."""
    return root / "results" / views_digest().removeprefix("sha256:")[:16]


def known_results(root: Path) -> dict[Run, Path]:
    """Run -> batch of every run with results of these views; a batch without a readable index is passed over."""
    return {run: batch for batch, index in batches(root) if index is not None for run in index.runs}


def batches(root: Path) -> Iterator[tuple[Path, Index | None]]:
    """Every batch of these views with its index; None for one that cannot be read, or says something else."""
    folder = results_folder(root)
    for batch in sorted(folder.iterdir()) if folder.is_dir() else []:
        try:
            index = msgspec.json.decode((batch / _INDEX).read_bytes(), type=Index)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            index = None
        if index and (index.format, index.views_digest) != (RESULTS_SCHEMA, views_digest()):
            index = None
        yield batch, index


def write_index(folder: Path, runs: list[Run]) -> None:
    """Write the index of a batch whose other files are there, and make all of them durable."""
    files = {name: size_and_sha256(folder / f"{name}.parquet")[1] for name in RESULTS}
    index = Index(RESULTS_SCHEMA, views_digest(), runs, files)
    write_atomic(folder / _INDEX, msgspec.json.format(msgspec.json.encode(index), indent=1) + b"\n")
    sync_tree(folder)


def is_sound(batch: Path, index: Index) -> bool:
    """True when every file of the batch is there and as it was made."""
    try:
        return set(index.files) == set(RESULTS) and all(
            size_and_sha256(batch / f"{name}.parquet")[1] == digest for name, digest in index.files.items()
        )
    except OSError:
        return False
