"""Results of every published run under the views of today, and what those of other views take up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..recorder.errors import PlanewiseError
from .bundle import verify_bundle
from .progress import Progress
from .publish import Publication
from .results import Published, make_results, remove_unsound
from .results_index import known_results
from .store import RunFolder, Store


@dataclass(frozen=True)
class Requalified:
    """What became of the results of one published run: ``status`` is computed, kept, or refused (``message``)."""

    run_id: str
    status: str
    message: str | None = None


def requalify(store: Store, *, progress: Progress | None = None) -> list[Requalified]:
    """Compute the results of every published run that has none of these views; one row a run, by folder name.

    Every bundle is verified deeply. A damaged one is refused and stops no other.
    """
    bundles: list[Published] = []
    found: dict[Path, Requalified] = {}
    for run in store.bundles():
        try:
            bundles.append(Published(run.path, verify_bundle(run.path)))
        except (PlanewiseError, OSError) as error:
            found[run.path] = Requalified(_name(run), "refused", str(error))
    remove_unsound(store, bundles)
    known = known_results(store.path)
    found |= _make(store, bundles, progress)
    for bundle in bundles:
        kept = bundle.identity in known
        found.setdefault(bundle.path, Requalified(bundle.receipt.run_id, "kept" if kept else "computed"))
    return [found[path] for path in sorted(found)]


def results_of(
    store: Store, publications: Sequence[Publication], *, progress: Progress | None = None
) -> list[Requalified]:
    """Compute the results of the runs that were just published; only those that could not be computed are listed."""
    bundles = [
        Published(Path(row.bundle_path), row.verification)
        for row in publications
        if row.bundle_path is not None and row.verification is not None
    ]
    return list(_make(store, bundles, progress).values())


def _make(store: Store, bundles: Sequence[Published], progress: Progress | None) -> dict[Path, Requalified]:
    """Make the results of all together; when that fails, of each half, so that only the broken ones are refused."""
    try:
        make_results(store, bundles, progress=progress)
    except (PlanewiseError, OSError) as error:
        if len(bundles) == 1:
            return {bundles[0].path: Requalified(bundles[0].receipt.run_id, "refused", str(error))}
        middle = len(bundles) // 2
        return _make(store, bundles[:middle], None) | _make(store, bundles[middle:], None)
    return {}


def _name(run: RunFolder) -> str:
    try:
        return run.run_id
    except PlanewiseError:
        return run.key
