"""The command ``planewise``: the group of all commands, and the one place that prints an error and exits."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click
import duckdb

from ..recorder.errors import PlanewiseError
from .commands.campaign import campaign
from .commands.catalog import catalog
from .commands.compare import compare
from .commands.completion import completion
from .commands.discard import discard
from .commands.doctor import doctor
from .commands.export import export
from .commands.ingest import ingest
from .commands.nightly import nightly
from .commands.overview import overview
from .commands.protocol import protocol
from .commands.publish import publish
from .commands.qualify import qualify
from .commands.query import query
from .commands.report import report
from .commands.requalify import requalify
from .commands.rules import rules
from .commands.schema import schema
from .commands.series import series
from .commands.sql import sql
from .commands.top import top
from .commands.vacuum import vacuum
from .commands.verify import verify

_EPILOG = """\b
Exit codes: 0 done; 1 a check that was asked for did not hold; 2 wrong use;
3 an input is unreadable, incompatible or in conflict; 4 a fault of planewise.
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, epilog=_EPILOG)
@click.version_option(package_name="planewise")
def cli() -> None:
    """Runtime evidence for training and inference: ingest, qualify, publish, query and compare captures.

    Data goes to standard output, everything else to standard error.
    """


for _command in (
    ingest,
    qualify,
    publish,
    requalify,
    discard,
    vacuum,
    nightly,
    verify,
    doctor,
    compare,
    campaign,
    series,
    export,
    overview,
    top,
    report,
    query,
    sql,
    catalog,
    rules,
    schema,
    protocol,
    completion,
):
    cli.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit; every refusal becomes one line on standard error and an exit code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (design, "Failure")."""
    try:
        result = cli.main(
            args=None if arguments is None else list(arguments), prog_name="planewise", standalone_mode=False
        )
        sys.stdout.flush()
    except click.exceptions.Abort:
        return _fail("interrupted", 130)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except PlanewiseError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader of our output went away; keep the interpreter from failing again on its final flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except duckdb.IOException as error:
        return _fail(f"cannot read the data: {_first_line(error)}", 3)
    except OSError as error:
        return _fail(f"{error.filename or 'input/output'}: {error.strerror or error}", 3)
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user
        if os.environ.get("PLANEWISE_DEBUG"):
            traceback.print_exc()
        return _fail(
            f"internal error: {type(error).__name__}: {_first_line(error)}; "
            "this is a fault of planewise: run again with PLANEWISE_DEBUG=1 and report what it prints",
            4,
        )
    return result if isinstance(result, int) else 0


def _fail(text: str, code: int) -> int:
    click.echo(f"planewise: {text}", err=True)
    return code


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
