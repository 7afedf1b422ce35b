"""The page that ``torch.cuda._memory_viz`` writes: it embeds the pickle of the snapshot, whole, as base64."""

from __future__ import annotations

import binascii
from pathlib import Path

from ..recorder.errors import InputRefused
from .pickles import LIMIT_BYTES
from .streams import StreamDamaged, chunks

_SCRIPT = b"MemoryViz.js"
_BEFORE = b'"base64": "'


def is_viz_page(start: bytes) -> bool:
    """True when these first bytes are those of a page of torch's memory viewer with a snapshot in it."""
    return start.lstrip()[:9].lower() == b"<!doctype" and _SCRIPT in start and _BEFORE in start


def embedded_pickle(path: Path) -> bytes:
    """The pickle in the page. Raises :class:`InputRefused` for a page that is damaged, cut or too long."""
    text = bytearray()
    try:
        for piece in chunks(path):
            text += piece
            if len(text) > 2 * LIMIT_BYTES:
                message = f"the page is longer than {2 * LIMIT_BYTES} bytes, expected at most that"
                raise InputRefused(message, source=path, code="too_large", remedy="take it with less history")
    except StreamDamaged as error:
        position = f"decompressed byte {error.offset}"
        raise InputRefused(error.message, source=path, position=position, code="damaged_stream") from None
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
    start = text.find(_BEFORE) + len(_BEFORE)
    end = text.find(b'"', start)
    try:
        if end < 0:
            raise binascii.Error("it has no end")
        return binascii.a2b_base64(text[start:end], strict_mode=True)
    except binascii.Error as error:
        message = f"the snapshot in the page is damaged: {error}"
        remedy = "ingest the pickle that the page was made from"
        raise InputRefused(
            message, source=path, position=f"byte {start}", code="damaged_document", remedy=remedy
        ) from None
