"""Files compressed with xz, unpacked beside the work for as long as it takes."""

from __future__ import annotations

import contextlib
import lzma
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

LARGEST = 8 << 30
"""Bytes to which one file may inflate; what follows is not read."""


class Unpacked(dict[Path, Path]):
    """Where the plain content of each file is; ``damage`` says of which files it is not whole, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.damage: dict[Path, str] = {}


@contextlib.contextmanager
def unpacked(files: Iterable[Path]) -> Iterator[Unpacked]:
    """Each file itself, or for ``*.xz`` a temporary copy of what is in it, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="planewise-nsys-") as folder:
        found = Unpacked()
        for number, file in enumerate(files):
            if file.suffix == ".xz":
                target = Path(folder) / f"{number}-{file.stem}"
                if why := _unpack(file, target):
                    found.damage[file] = why
                found[file] = target
            else:
                found[file] = file
        yield found


def _unpack(file: Path, target: Path) -> str | None:
    """Unpack a file as far as it goes; the reason when that is not to its end."""
    written = 0
    with target.open("wb") as out:
        try:
            with lzma.open(file) as stream:
                while block := stream.read(1 << 20):
                    written += len(block)
                    if written > LARGEST:
                        return f"it inflates to more than {LARGEST} bytes"
                    out.write(block)
        except (lzma.LZMAError, EOFError) as error:
            return f"the xz stream ends early or is corrupt after {written} bytes: {error}"
    return None
