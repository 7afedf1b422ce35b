"""Takes staged runs out of a store; what is published stays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ..recorder.errors import PlanewiseError
from .fsio import sync_folder
from .store import Store, run_key


@dataclass(frozen=True)
class Discarded:
    """What became of one run: ``status`` is discarded, or refused with the reason in ``message``."""

    run_id: str
    status: str
    message: str | None = None


def discard(store: Store, run_ids: Sequence[str]) -> list[Discarded]:
    """Remove staged runs, each by one rename, so that nobody ever sees half of one; one result per id, in order.

    A published run is never removed, an unknown one is refused; neither stops the others.
    """
    return [_discard_or_refuse(store, run_id) for run_id in run_ids]


def _discard_or_refuse(store: Store, run_id: str) -> Discarded:
    staged = store.path / "staging" / run_key(run_id)
    try:
        with store.scratch() as scratch, store.lock():
            if not staged.is_dir():
                published = store.find_bundle(run_id) is not None
                message = "it is published, and a bundle is never taken back" if published else "no such run is staged"
                return Discarded(run_id, "refused", message)
            os.rename(staged, scratch / "run")
            sync_folder(staged.parent)
    except (PlanewiseError, OSError) as error:
        return Discarded(run_id, "refused", str(error))
    return Discarded(run_id, "discarded")
