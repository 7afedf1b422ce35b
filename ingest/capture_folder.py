"""What lies in a capture folder: header, terminal record, shards in order, decoded strictly (docs, architecture)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ..recorder.errors import IncompatibleInput, InputRefused
from ..recorder.families import ATTACHMENT_FOLDER, CAPTURE_FORMAT, FAMILIES, HEADER_NAME, TERMINAL_NAME, shard_name
from ..recorder.files import TEMPORARY_SUFFIX
from ..recorder.planes import PLANE_VERSION
from . import strict_json
from .contract import IssueLog
from .lines import is_blank
from .run_metadata import Count, RunMetadata
from .source import source_digest
from .strict_json import BadRecord

UNFINISHED_HEADER = HEADER_NAME + TEMPORARY_SUFFIX
"""What a recording leaves behind that was killed before it had written its header."""

_SHARD = re.compile(r"(?P<family>[a-z_]+)-(?P<number>\d{6,})\.parquet")
_Document = TypeVar("_Document", bound=msgspec.Struct)


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """``header.json``: what was to be captured; written before the first event."""

    format: str
    plane_version: Count
    producer: str
    run: RunMetadata


class TerminalRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """``terminal.json``: how the capture ended, rows by family, and rows that could not be written."""

    format: str
    outcome: Literal["complete", "failed"]
    timestamp_ns: Count
    reason: str | None = None
    rows: dict[str, Count]
    lost_rows: Count
    header_sha256: str | None = None
    """Of the header as the recorder wrote it; None in captures older than this member."""


class _Version(msgspec.Struct):
    """The members that say whether the rest can be read at all."""

    format: Any = None
    plane_version: Any = PLANE_VERSION


@dataclass(frozen=True)
class CaptureFolder:
    """The parts of one capture; ``terminal`` is None when the capture was interrupted."""

    path: Path
    header: Header
    terminal: TerminalRecord | None
    shards: dict[str, list[Path]]


def open_folder(path: Path, issues: IssueLog) -> CaptureFolder:
    """Read the folder's documents and list its shards; facts that do not refuse it are noted in ``issues``.

    Raises :class:`IncompatibleInput` for another format or plane version, :class:`InputRefused` for anything else.
    """
    try:
        names = sorted(entry.name for entry in path.iterdir())
    except OSError as error:
        raise InputRefused(f"cannot be listed: {error.strerror}", source=path, code="unreadable") from error
    if HEADER_NAME not in names:
        raise _no_header(path, names)
    header = read_document(path / HEADER_NAME, Header)
    terminal = read_document(path / TERMINAL_NAME, TerminalRecord) if TERMINAL_NAME in names else None
    if terminal is not None:
        _check_reason(path / TERMINAL_NAME, terminal)
        _check_header(path / HEADER_NAME, terminal)
    return CaptureFolder(path, header, terminal, _shards(path, names, issues))


def _no_header(path: Path, names: list[str]) -> InputRefused:
    found, remedy = f"no {HEADER_NAME} in the folder, expected a capture", "name the capture folder itself"
    if not names:
        found = "the folder is empty, expected a capture"
    elif UNFINISHED_HEADER in names:
        found, remedy = f"the recording ended before its {HEADER_NAME}, so nothing was recorded", "record it again"
    return InputRefused(found, source=path, code="header_missing", remedy=remedy)


def read_document(path: Path, kind: type[_Document]) -> _Document:
    """One JSON document of a capture, decoded strictly."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
    except UnicodeDecodeError as error:
        raise InputRefused(
            "is no UTF-8 text", source=path, position=f"byte {error.start}", code="invalid_utf8"
        ) from None
    _check_version(path, text)
    try:
        return _decode(text, kind)
    except BadRecord as fault:
        position = fault.field and f"field {fault.field}"
        raise InputRefused(fault.message, source=path, position=position, code=fault.code) from None


def _decode(text: str, kind: type[_Document]) -> _Document:
    try:
        document = msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise strict_json.explain(text, error) from None
    strict_json.check_line(text)
    if strict_json.has_negative_zero(text.encode()):
        strict_json.check_negative_zero(strict_json.parse(text), kind.__struct_fields__, ())
    return document


def _check_version(path: Path, text: str) -> None:
    try:
        found = msgspec.json.decode(text, type=_Version)
    except (msgspec.MsgspecError, RecursionError):
        return  # Strict decoding says what is wrong.
    for name, value, known in (
        ("format", found.format, CAPTURE_FORMAT),
        ("plane_version", found.plane_version, PLANE_VERSION),
    ):
        if value is not None and value != known:
            raise IncompatibleInput(
                f"found {value!r}, this reader knows {known!r}",
                source=path,
                position=f"field {name}",
                code="unsupported_version",
                remedy="ingest it with the planewise that recorded it, or upgrade this one",
            )


def _check_reason(path: Path, terminal: TerminalRecord) -> None:
    """Rules 11 and 12 of protocol 1.3 hold for our own captures too."""
    if terminal.outcome == "complete" and terminal.reason is not None:
        message, code = "the outcome is complete and has a reason, expected none", "complete_with_reason"
    elif terminal.outcome == "failed" and is_blank(terminal.reason or ""):
        message, code = "the outcome is failed without a reason, expected one", "failed_without_reason"
    else:
        return
    raise InputRefused(message, source=path, position="field reason", code=code)


def _check_header(header: Path, terminal: TerminalRecord) -> None:
    """Run, contract and identity decide what a capture may claim, so they are those that were recorded."""
    if terminal.header_sha256 is None:
        return
    found = source_digest(header).removeprefix("sha256:")
    if found != terminal.header_sha256:
        raise InputRefused(
            f"its sha256 is {found}, expected {terminal.header_sha256} as {TERMINAL_NAME} says: it is not the header "
            "that was recorded",
            source=header,
            position="whole file",
            code="header_changed",
            remedy="copy the whole folder again; what a run asserts cannot be edited afterwards",
        )


def _shards(path: Path, names: list[str], issues: IssueLog) -> dict[str, list[Path]]:
    numbers: dict[str, list[int]] = {}
    for name in names:
        shard = _SHARD.fullmatch(name)
        if shard and shard["family"] in FAMILIES:
            numbers.setdefault(shard["family"], []).append(int(shard["number"]))
        elif name.endswith(TEMPORARY_SUFFIX):
            issues.note(name, "unfinished_file", "info", "a file that was still being written was ignored")
        elif name not in (HEADER_NAME, TERMINAL_NAME, ATTACHMENT_FOLDER):
            issues.note(name, "unknown_file", "info", "a file that belongs to no capture was ignored")
    for family, found in numbers.items():
        missing = next((number for at, number in enumerate(sorted(found), 1) if number != at), None)
        if missing is not None:
            expected = shard_name(family, sorted(found).index(missing) + 1)
            raise InputRefused(
                f"{expected} is missing, found {shard_name(family, missing)} after it",
                source=path,
                code="shard_missing",
                remedy="copy the whole folder again",
            )
    return {family: [path / shard_name(family, n) for n in sorted(found)] for family, found in numbers.items()}
