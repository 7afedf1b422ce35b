"""Keeps outputs out of published bundles (protocol 13.2)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..recorder.errors import UsageError
from .run_folder import is_regular


def refuse_output_inside_bundle(output: str | Path, *inputs: str | Path) -> None:
    """Refuse an output path that lies in a published bundle or passes through one on its way (protocol 13.2).

    The path is followed component by component through existing links and ``..``. A folder is a bundle when it holds
    a regular bundle.json; the folders of ``inputs`` that are bundles are recognised by identity too. Raises
    :class:`UsageError`; nothing is written.
    """
    bundles = [root for root in map(_input_root, inputs) if is_regular(root / "bundle.json")]
    for step in _steps(Path(output)):
        if is_regular(step / "bundle.json") or any(_same(step, root) for root in bundles):
            raise UsageError(
                f"the output would lie in, or pass through, the published bundle {step}",
                source=output,
                code="output_inside_bundle",
                remedy="write it somewhere else; a bundle is never written again",
            )


def _input_root(path: str | Path) -> Path:
    given = Path(path)
    return given if given.is_dir() else given.parent


def _same(left: Path, right: Path) -> bool:
    try:
        return os.path.samefile(left, right)
    except OSError:
        return False


def _steps(path: Path) -> Iterable[Path]:
    """Every place a path passes through, links and ``..`` followed as the system does, the folders above included."""
    base = Path.cwd() if not path.is_absolute() else Path("/")
    yield from (base, *base.parents)
    current, pending, links = base, list(reversed(path.parts)), 0
    while pending:
        part = pending.pop()
        current = current.parent if part == ".." else current / part
        if current.is_symlink():
            links += 1
            if links > 40:  # As many as Linux follows.
                raise UsageError("too many links", source=path, code="too_many_links")
            target = current.readlink()
            current = current.parent
            pending.extend(reversed(target.parts))
        else:
            yield current
