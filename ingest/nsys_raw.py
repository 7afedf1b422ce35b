"""Raw reports of Nsight Systems, which only nsys itself can read: named, with the command that exports one.

Their content is proprietary and has no signature that is documented, so this is the one place where a file's name
helps: it only chooses the words of a refusal, for a binary file that nothing else knows.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from ..recorder.errors import IncompatibleInput, InputRefused

_ENDINGS = {
    ".nsys-rep": "is a raw report of Nsight Systems",
    ".qdrep": "is a raw report of an older Nsight Systems",
    ".qdstrm": "is an unfinished recording of Nsight Systems",
}


def export_command(path: Path) -> str:
    """The command that exports a raw report as the SQLite database that is read here."""
    target = path.with_suffix(".sqlite").name
    return f"nsys export --type sqlite --output {shlex.quote(target)} {shlex.quote(path.name)}"


def raw_report_refusal(path: Path, raw: bytes) -> InputRefused | None:
    """The refusal of a binary file with the name of a raw report; None for everything else."""
    found = next((words for ending, words in _ENDINGS.items() if path.name.lower().endswith(ending)), None)
    if found is None or _is_text(raw):
        return None
    if path.suffix.lower() == ".qdstrm":
        remedy = f"import it first (QdstrmImporter --input-file {shlex.quote(path.name)}), then export the report"
    else:
        remedy = f"run: {export_command(path)}"
    message = f"{found}, which only nsys can read"
    return IncompatibleInput(message, source=path, code="nsys_raw_report", remedy=remedy)


def _is_text(raw: bytes) -> bool:
    """Text or zeros under such a name are something else: a pointer, a message, a copy that failed."""
    if not raw.strip(b" \t\r\n\0"):
        return True
    return b"\0" not in raw and all(byte >= 32 or byte in b"\t\r\n\f" for byte in raw[:4096])
