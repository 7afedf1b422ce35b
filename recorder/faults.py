"""Tells of a recording fault once, at the user's own line, without ever raising into the training loop."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

_HERE = str(Path(__file__).parent)


class RecordingWarning(RuntimeWarning):
    """A capture cannot be written any more; training goes on, and ``finish`` will raise."""


def warn_once_of(fault: BaseException, folder: Path) -> None:
    """Warn that rows are lost from now on, pointing at the first caller outside the recorder."""
    message = f"{folder}: recording stopped ({type(fault).__name__}: {fault}); further rows are counted as lost"
    try:
        warnings.warn(message, RecordingWarning, stacklevel=_users_level())
    except RecordingWarning:
        # The process turns warnings into errors; a recorder must not stop the loop even then.
        logging.getLogger(__name__).warning(message)


def _users_level() -> int:
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_HERE) or "contextlib" in frame.f_code.co_filename
    ):
        frame = frame.f_back
        level += 1
    return level
