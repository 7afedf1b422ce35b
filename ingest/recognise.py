"""Names what no reader reads: what a file is by its content, in one sentence, and what to do with it.

Every answer is a refusal, so that a batch says plainly what it could not use; a file that nothing here knows stays
``unknown_format``. Names of files play no part, contents do.
"""

from __future__ import annotations

import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from ..recorder.errors import IncompatibleInput, InputRefused
from .execution_trace import execution_trace_refusal
from .nsys_raw import raw_report_refusal
from .streams import StreamDamaged, chunks, head

_HEAD_BYTES = 1 << 16
_SHOWN_MEMBERS = 5
_LFS = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\s.*?oid sha256:([0-9a-f]{64})\s+size (\d+)", re.DOTALL
)
_MARKUP = re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype html|html|head|body|script)\b", re.DOTALL | re.IGNORECASE)
_KEY = re.compile(rb'"((?:[^"\\]|\\.){1,60})"\s*:')
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
)
_PACKED = (
    (b"BZh", "bzip2", "bunzip2"),
    (b"\xfd7zXZ\x00", "xz", "unxz"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x"),
    (b"Rar!", "RAR", "unrar x"),
)


def refusal(path: Path, known: str) -> InputRefused:
    """Why nothing at ``path`` is read: what it is, by a code of its own, and the remedy.

    ``known`` lists the formats that are read, for a content that is nothing known.
    """
    if path.is_dir():
        return _folder(path, known)
    if not path.is_file():
        message = "is no regular file, expected a trace, a report or a capture folder"
        return InputRefused(message, source=path, code="not_a_file")
    try:
        raw = _raw_head(path)
    except OSError as error:
        return InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable")
    text = head(path, _HEAD_BYTES)
    for look in _LOOKS:
        found = look(path, raw, text)
        if found is not None:
            return found
    return _unknown(path, known)


def _raw_head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


def _folder(path: Path, known: str) -> InputRefused:
    names = sorted(child.name for child in path.iterdir())
    if not names:
        message = f"the folder is empty, expected a source; known formats: {known}"
        return IncompatibleInput(message, source=path, code="unknown_format", remedy="name a folder that holds traces")
    message = f"the folder is no capture and no artifact folder that is known; known formats: {known}"
    return IncompatibleInput(message, source=path, code="unknown_format", remedy="ingest the files in it")


def _unknown(path: Path, known: str) -> InputRefused:
    return IncompatibleInput(
        f"the content matches no known format; known formats: {known}",
        source=path,
        code="unknown_format",
        remedy="convert it first, or ingest it with --format if you know which of these it is",
    )


def _empty(path: Path, raw: bytes, text: bytes) -> InputRefused | None:
    if not raw:
        return _says(path, "empty_file", "the file is empty", "record or copy it again")
    if not raw.strip(b" \t\r\n\0"):
        message = f"its first {len(raw)} bytes are blanks or zeros, expected a trace"
        return _says(path, "empty_file", message, "record or copy it again")
    if raw[:2] == b"\x1f\x8b" and not text:
        return _damaged(path)
    return None


def _damaged(path: Path) -> InputRefused:
    try:
        for _ in chunks(path):
            break
    except StreamDamaged as error:
        return _says(path, "damaged_stream", error.message, "copy it again")
    return _says(path, "empty_file", "is a compressed file with nothing in it", "record or copy it again")


def _lfs_pointer(path: Path, raw: bytes, text: bytes) -> InputRefused | None:
    """A pointer is short text; the object it names lies on a Git LFS server."""
    pointer = _LFS.match(text[:1024])
    if pointer is None:
        return None
    oid, size = pointer[1].decode(), int(pointer[2])
    message = f"is a Git LFS pointer to the object sha256:{oid} of {size} bytes, not the file itself"
    return _says(path, "lfs_pointer", message, "run git lfs pull in its repository, then ingest the file")


def _execution_trace(path: Path, raw: bytes, text: bytes) -> InputRefused | None:
    return execution_trace_refusal(path)


def _nsys_report(path: Path, raw: bytes, text: bytes) -> InputRefused | None:
    return raw_report_refusal(path, raw)


def _archive(path: Path, raw: bytes, text: bytes) -> InputRefused | None:
    kind = None
    if text[257:262] == b"ustar":
        kind, names = "a tar archive", _tar_members(path)
    elif raw[:4] == b"PK\x03\x04":
        kind, names = "a zip archive", _zip_members(path)
    if kind is None:
        for magic, packer, command in _PACKED:
            if raw.startswith(magic):
                message = f"is compressed with {packer}, expected plain, gzip or zstd"
                return _says(path, "archive", message, f"run {command} on it and ingest what comes out")
        return None
    shown = ", ".join(names[:_SHOWN_MEMBERS]) + (", ..." if len(names) > _SHOWN_MEMBERS else "")
    if any(name.endswith(".et") for name in names):
        message = f"is {kind} of Chakra execution traces in protobuf ({shown}), which record no device times"
        return _says(path, "execution_trace", message, "ingest the Kineto trace of the same run instead")
    remedy = "unpack it and ingest the folder"
    return _says(path, "archive", f"is {kind}, expected a trace itself{f' (holds {shown})' if shown else ''}", remedy)


def _tar_members(path: Path) -> list[str]:
    """The names of the first members; a damaged archive gives those before the damage."""
    names: list[str] = []
    try:
        with tarfile.open(path, "r:*") as archive:
            for member in archive:
                names.append(member.name)
                if len(names) > _SHOWN_MEMBERS:
                    break
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError, zlib.error):
        pass
    return names


def _zip_members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, zlib.error):
        return []


def _binary(path: Path, raw: bytes, text: bytes) -> InputRefused | None:
    if raw.startswith(b"PAR1"):
        message = "is a Parquet file of no plane and no report that is known"
        return _says(path, "parquet", message, "ingest the folder it belongs to, or query it with DuckDB")
    if raw.startswith(b"SQLite format 3\0"):
        message = "is an SQLite database of no profiler that is known"
        return _says(path, "sqlite", message, "export it with the profiler that made it")
    for magic, kind in _IMAGES:
        if raw.startswith(magic):
            return _says(path, "image", f"is {kind}, no trace", "ingest the trace it was made from")
    if text[:1] == b"\x80" and text[1:2] in b"\x02\x03\x04\x05":
        message = "is a Python pickle, but no CUDA memory snapshot; nothing of it was executed"
        return _says(
            path, "unknown_pickle", message, "export what it holds as JSON, or ingest another trace of the run"
        )
    return None


def _json(path: Path, raw: bytes, text: bytes) -> InputRefused | None:
    start = text.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:1] not in (b"{", b"["):
        return None
    keys = [key.decode("utf-8", "replace") for key in _KEY.findall(start[:4096])]
    if start[:1] == b"{" and (b"speedscope" in text[:4096] or _is_speedscope(keys)):
        message = "is a speedscope profile: sampled stacks with weights, no device work and no operations"
        return _says(path, "speedscope", message, "ingest the trace it was converted from")
    if _is_triton(keys):
        message = "is a request trace of the Triton Inference Server, which is not read yet"
        return _says(path, "triton_trace", message, "ingest an Nsight Systems or Kineto trace of the server instead")
    shown = ", ".join(dict.fromkeys(keys[:6])) or "no keys"
    message = f"is JSON of no known schema (its first keys: {shown})"
    return _says(path, "unknown_json", message, "export a Chrome trace or another known format")


def _is_speedscope(keys: list[str]) -> bool:
    return {"shared", "profiles"} <= set(keys) or {"frames", "profiles"} <= set(keys)


def _is_triton(keys: list[str]) -> bool:
    return keys[:2] in (["id", "timestamps"], ["id", "model_name"])


def _text(path: Path, raw: bytes, text: bytes) -> InputRefused | None:
    if _MARKUP.match(text):
        message = "is an HTML page, no trace (a report, or an error page that was saved in place of the file)"
        return _says(path, "html", message, "download the trace itself")
    try:
        lines = _whole_lines(text)
    except UnicodeDecodeError:
        return None
    if not lines or any(ord(sign) < 32 and sign not in "\t\r\n\f\x1b" for line in lines for sign in line):
        return None
    separator = next((s for s in ",;\t" if len(lines) > 1 and lines[0].count(s) and _same_width(lines, s)), None)
    if separator:
        shown = lines[0].strip()[:80]
        return _says(path, "csv", f"is a table of no known report (header: {shown})", "export a report by its name")
    message = f"is plain text, no trace (its first line: {lines[0].strip()[:80]!r})"
    return _says(path, "text", message, "ingest the trace itself")


def _whole_lines(text: bytes) -> list[str]:
    """The lines of a head that ends anywhere, without what the end of it cut."""
    if len(text) == _HEAD_BYTES:
        text = text[: text.rfind(b"\n") + 1] or text.decode("utf-8", "ignore").encode()
    return [line for line in text.decode("utf-8-sig").split("\n") if line.strip()][:50]


def _same_width(lines: list[str], separator: str) -> bool:
    """Quoted cells may hold separators, so rows may be wider than the header, never narrower."""
    width = lines[0].count(separator)
    return all(line.count(separator) >= width for line in lines[1:])


def _says(path: Path, code: str, message: str, remedy: str) -> InputRefused:
    return IncompatibleInput(message, source=path, code=code, remedy=remedy)


_LOOKS: tuple[Callable[[Path, bytes, bytes], InputRefused | None], ...] = (
    _nsys_report,
    _empty,
    _lfs_pointer,
    _archive,
    _execution_trace,
    _binary,
    _json,
    _text,
)
