"""The one exception family of planewise.

A refusal names the thing, where in it, what was found, what was expected and what to do. One place in the driver
(``pipeline.cli.main``) prints it and exits with :attr:`PlanewiseError.exit_code`.
"""

from __future__ import annotations


class PlanewiseError(Exception):
    """Base of every refusal.

    Parameters
    ----------
    message:
        What was found, and what was expected.
    source:
        The file, folder or object that is refused; None when there is none.
    position:
        Where in the source, in words (``line 12``, ``column start_ns``, ``byte 4096``).
    code:
        A stable snake_case name of the refusal, for tables and scripts.
    remedy:
        What the reader can do about it.
    """

    exit_code = 4
    default_code = "internal"

    def __init__(
        self,
        message: str,
        *,
        source: object | None = None,
        position: str | None = None,
        code: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.message = message
        self.source = None if source is None else str(source)
        self.position = position
        self.code = code or self.default_code
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.source, self.position) if part)
        text = f"{where}: {self.message}" if where else self.message
        return f"{text}; {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive BaseException's own pickling (process pools need it).
        return _rebuild, (type(self), self.message, self.source, self.position, self.code, self.remedy)


def _rebuild(
    kind: type[PlanewiseError],
    message: str,
    source: str | None,
    position: str | None,
    code: str | None,
    remedy: str | None,
) -> PlanewiseError:
    return kind(message, source=source, position=position, code=code, remedy=remedy)


class CheckFailed(PlanewiseError):
    """A check that the caller asked for, such as ``--require-valid`` or ``--require-eligible``, did not hold."""

    exit_code = 1
    default_code = "check_failed"


class UsageError(PlanewiseError):
    """The call itself is wrong: an argument, an option, the order of calls."""

    exit_code = 2
    default_code = "usage"


class ContractError(UsageError, ValueError):
    """A capture contract, comparison identity, run or recorded value breaks its rules."""

    default_code = "contract"


class InputRefused(PlanewiseError):
    """An input cannot be read, or breaks the rules of its format. Nothing of it was kept."""

    exit_code = 3
    default_code = "input_refused"


class IncompatibleInput(InputRefused):
    """An input of a format or version that this reader does not know; the message says both versions."""

    default_code = "incompatible"


class Conflict(InputRefused):
    """Something else is already where this was to go; nothing was overwritten."""

    default_code = "conflict"


class VerificationFailed(InputRefused):
    """A published bundle is not what its manifest says."""

    default_code = "verification_failed"


class RecordingError(PlanewiseError):
    """The recorder could not write; the capture ends without a terminal record and counts as interrupted."""

    exit_code = 3
    default_code = "recording_failed"
