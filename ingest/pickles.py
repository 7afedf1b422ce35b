"""A pickle of plain containers, and nothing else: no global is looked up, nothing is called, nothing is built.

The opcodes of the whole stream are walked first (the walk executes nothing), so that what a pickle must not hold is
refused with its place before any of it is decoded. That is more than globals, calls, persistent ids and extension
codes: the decoder would make room for any memo place at once, however few there are; and a dictionary hashes its keys,
which takes forever, or ends the process, for tuples of tuples, long tuples and integers of a million digits. So tuples
hold numbers and text alone, integers have 72 bits, and containers are counted. Sets are not needed and not read.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

from ..recorder.errors import InputRefused
from .streams import StreamDamaged, chunks

LIMIT_BYTES = 1 << 29
"""Longest pickle, decompressed; it lies in memory whole while it is read."""

LIMIT_CONTAINERS = 1 << 24
"""Most lists, dictionaries and tuples of one pickle: one byte of it makes room for 64 bytes of each.

Nesting needs no limit of its own: neither the decoder nor the readers follow it by recursion.
"""

LIMIT_TUPLE = 64
"""Longest tuple."""

LIMIT_INTEGER = 9
"""Longest integer in bytes: an address of 64 bits and its sign."""

PROTOCOLS = range(2, 6)
"""Pickle protocols that are read; earlier ones spell integers and text in ways no profiler used."""

_SCALARS = """
    NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE BINUNICODE8
    BINSTRING SHORT_BINSTRING SHORT_BINBYTES BINBYTES BINBYTES8
""".split()  # noqa: SIM905 - these names read better as words
_SILENT = ["PROTO", "FRAME", "MEMOIZE"]
_PUTS = ["BINPUT", "LONG_BINPUT"]
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "TUPLE": LIMIT_TUPLE}
_REST = ["APPEND", "APPENDS", "SETITEM", "SETITEMS", "BINGET", "LONG_BINGET"]
_SCALAR, _QUIET, _PUT, _TUPLE, _CONTAINER, _MARK, _STOP, _OTHER = range(8)
_NAMED = {
    **dict.fromkeys(_SCALARS, _SCALAR),
    **dict.fromkeys(_SILENT, _QUIET),
    **dict.fromkeys(_PUTS, _PUT),
    **dict.fromkeys(_TUPLES, _TUPLE),
    **dict.fromkeys(_REST, _OTHER),
    **dict.fromkeys(["EMPTY_LIST", "EMPTY_DICT"], _CONTAINER),
    "MARK": _MARK,
    "STOP": _STOP,
}
"""The opcodes that the pickler of protocols 2 to 5 writes for plain containers, by what the walk does about them."""

_OPCODES: list[Any] = [None] * 256
_KINDS: list[int] = [_OTHER] * 256
_SIZES: list[int | None] = [None] * 256
for _opcode in pickletools.opcodes:
    _OPCODES[ord(_opcode.code)] = _opcode
    if _opcode.name in _NAMED:
        _KINDS[ord(_opcode.code)] = _NAMED[_opcode.name]
        if _opcode.arg is None or _opcode.arg.n >= 0:
            _SIZES[ord(_opcode.code)] = 1 + (_opcode.arg.n if _opcode.arg else 0)
_LENGTHS = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}


_DAMAGE = (
    *(pickle.UnpicklingError, EOFError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    MemoryError,
)
"""What the decoder raises for opcodes that do not fit together."""


class _PlainUnpickler(pickle.Unpickler):
    """Second bar behind the walk: whatever asks for a global is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"names the global {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("holds a persistent id")


def is_pickle(start: bytes) -> bool:
    """True when these first bytes are those of a pickle of a protocol that is read."""
    return len(start) > 2 and start[0] == 0x80 and start[1] in PROTOCOLS


def load_plain(path: Path) -> tuple[Any, int]:
    """The plain containers in a pickle (perhaps compressed), and the length of the pickle in bytes.

    Raises :class:`InputRefused` for a file that is damaged, too long, or holds anything but plain containers.
    """
    data = _read(path)
    return plain(path, data), len(data)


def plain(path: Path, data: bytes) -> Any:
    """The plain containers in the bytes of a pickle that ``path`` holds. Raises :class:`InputRefused`."""
    _walk(path, data)
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise InputRefused(f"the pickle is damaged: {reason}", source=path, code="damaged_pickle") from None


def _read(path: Path) -> bytes:
    data = bytearray()
    try:
        for piece in chunks(path):
            data += piece
            if len(data) > LIMIT_BYTES:
                message = f"the pickle is longer than {LIMIT_BYTES} bytes, expected at most that"
                raise InputRefused(message, source=path, code="too_large", remedy="take it with less history")
    except StreamDamaged as error:
        position = f"decompressed byte {error.offset}"
        raise InputRefused(error.message, source=path, position=position, code="damaged_stream") from None
    except OSError as error:
        raise InputRefused(f"cannot be read: {error.strerror}", source=path, code="unreadable") from error
    return bytes(data)


def _walk(path: Path, data: bytes) -> None:
    """Refuse the first opcode that plain containers do not need; executes nothing."""
    place, count, containers, end = 0, 0, 0, len(data)
    scalars, marked = 0, False  # How many scalars were pushed one after another, and whether a mark is below them.
    while place < end:
        code = data[place]
        kind = _KINDS[code]
        if kind == _OTHER:  # First, for it is four opcodes of five.
            scalars, marked = 0, False
        elif kind == _SCALAR:
            scalars += 1
        elif kind == _PUT:
            _check_put(path, data, place, count)
        elif kind == _MARK:
            scalars, marked = 0, True
        elif kind == _STOP:
            return
        elif kind != _QUIET:
            if kind == _TUPLE:
                _check_tuple(path, data, place, scalars, marked)
            scalars, marked = 0, False
            containers += 1
            if containers > LIMIT_CONTAINERS:
                message = f"more than {LIMIT_CONTAINERS} containers, expected at most that"
                raise _refused(path, place, message, "too_large")
        place += _SIZES[code] or _variable(path, data, place)
        count += 1
    raise _refused(path, end, "the pickle ends without its STOP", "damaged_pickle")


def _check_put(path: Path, data: bytes, place: int, count: int) -> None:
    width = (_SIZES[data[place]] or 1) - 1
    index = int.from_bytes(data[place + 1 : place + 1 + width], "little")
    if index > count:
        raise _refused(path, place, f"memo place {index} after {count} opcodes", "damaged_pickle")


def _check_tuple(path: Path, data: bytes, place: int, scalars: int, marked: bool) -> None:
    name = _OPCODES[data[place]].name
    fits = marked and scalars <= LIMIT_TUPLE if name == "TUPLE" else scalars >= _TUPLES[name]
    if not fits:
        message = f"a tuple that holds more than {LIMIT_TUPLE} numbers and pieces of text, or other things"
        raise _refused(path, place, message, "unsafe_pickle")


def _variable(path: Path, data: bytes, place: int) -> int:
    """The size of an opcode whose argument says its own length; refuses every opcode that is not read."""
    opcode = _OPCODES[data[place]]
    if opcode is None:
        raise _refused(path, place, f"the byte {data[place]:#04x} is no opcode", "damaged_pickle")
    if opcode.name not in _NAMED:
        raise _refused(path, place, f"the opcode {opcode.name} stands for more than plain containers", "unsafe_pickle")
    width = _LENGTHS[opcode.arg.n]
    size = 1 + width + int.from_bytes(data[place + 1 : place + 1 + width], "little")
    if opcode.name == "LONG1" and size > 2 + LIMIT_INTEGER:
        raise _refused(path, place, f"an integer of {size - 2} bytes, expected up to {LIMIT_INTEGER}", "unsafe_pickle")
    if place + size > len(data):
        raise _refused(path, place, f"{opcode.name} needs {size} bytes, {len(data) - place} are left", "damaged_pickle")
    return size


def _refused(path: Path, place: int, message: str, code: str) -> InputRefused:
    remedies = {
        "unsafe_pickle": "only pickles of plain containers are read; nothing of it was executed",
        "too_large": "take it with less history",
    }
    remedy = remedies.get(code, "copy the file again, or take the snapshot again")
    return InputRefused(message, source=path, position=f"byte {place}", code=code, remedy=remedy)
