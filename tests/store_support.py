"""Real traces and stores for tests of the stages: the worked example of the protocol under any run id."""

from __future__ import annotations

import json
from pathlib import Path

from planewise.pipeline.ingest_stage import ingest_sources
from planewise.pipeline.publish import publish
from planewise.pipeline.store import Store

EXAMPLE = Path(__file__).parent / "data" / "every-kind.jsonl"


def write_trace(path: Path, run_id: str = "r1", *, entrypoint: str | None = None) -> Path:
    """Write the example with another run id (and entrypoint); returns ``path``."""
    first, *rest = EXAMPLE.read_text(encoding="utf-8").splitlines()
    meta = json.loads(first)
    meta["run_id"] = run_id
    if entrypoint is not None:
        meta["entrypoint"] = entrypoint
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([json.dumps(meta), *rest]) + "\n", encoding="utf-8")
    return path


def store_with(tmp_path: Path, *run_ids: str) -> Store:
    """A store with these runs staged."""
    store = Store.open(tmp_path / "store", create=True)
    sources = [write_trace(tmp_path / "sources" / f"{n}.jsonl", run_id) for n, run_id in enumerate(run_ids)]
    results = ingest_sources(store, sources)
    assert [result.status for result in results] == ["ingested"] * len(run_ids), results
    return store


def published(tmp_path: Path, run_id: str = "r1") -> Path:
    """A published bundle, its files writable again so that a test can tamper with it."""
    store = store_with(tmp_path, run_id)
    [result] = publish(store, viewers=False)
    assert result.status == "published", result
    bundle = Path(str(result.bundle_path))
    for file in bundle.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
    return bundle


def tree(folder: Path) -> dict[str, bytes]:
    """Every file under a folder with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
