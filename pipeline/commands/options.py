"""Options that several commands share, and the progress line of long stages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
import rich.progress
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from ...recorder.errors import InputRefused
from ..output import OutputFormat, printable
from ..progress import Progress
from ..side_by_side import RayCluster
from ..store import Store
from ..stores import is_remote

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class StorePath(click.Path):
    """The folder of a store, or its address on S3; an empty text is no folder, least of all the current one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of a text; fails for an empty one."""
        if value == "":
            self.fail("is empty; name the folder of the store", param, ctx)
        if is_remote(value):
            return value
        return super().convert(value, param, ctx)


class Share(click.ParamType[float]):
    """A share of a whole: ``1%`` or ``0.01``."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share as a number; fails for what is none, or lies outside of 0 to 1."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            found = -1.0
        if not 0 < found < 1:
            self.fail(f"found {value!r}, expected a share such as 1% or 0.01", param, ctx)
        return found


def store_option(function: Decorated) -> Decorated:
    """``--store``: the store's folder, also from PLANEWISE_STORE."""
    return click.option(
        "--store",
        "store_path",
        type=StorePath(),
        required=True,
        envvar="PLANEWISE_STORE",
        show_envvar=True,
        help="Folder of the store, or s3://BUCKET/PREFIX.",
    )(function)


def viewer_option(function: Decorated) -> Decorated:
    """``--viewer/--no-viewer``: whether a bundle gets a page of its own."""
    return click.option(
        "--viewer/--no-viewer",
        "viewers",
        default=True,
        show_default=True,
        help="Write viewer.html, the page of the run, into each new bundle.",
    )(function)


def jobs_option(function: Decorated) -> Decorated:
    """``--jobs`` and ``--ray``: who works; the function gets one argument ``jobs``."""

    @click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Processes that work side by side; what they give is the same.",
    )
    @click.option(
        "--ray",
        metavar="ADDRESS",
        help="Work on a Ray cluster instead, whose nodes see sources and store under the same paths: HOST:PORT of its "
        "head, auto, or local. Needs the extra ray.",
    )
    @wraps(function)
    def with_jobs(*args: Any, jobs: int, ray: str | None, **options: Any) -> Any:
        if ray is not None and jobs != 1:
            raise click.UsageError("--ray and --jobs exclude each other: Ray knows how many CPUs its nodes have.")
        return function(*args, jobs=jobs if ray is None else RayCluster(ray), **options)

    return with_jobs  # type: ignore[return-value]


def format_option(name: str = "--format") -> Callable[[Decorated], Decorated]:
    """``--format``: how rows are written; ``table`` is for people and may be cut, the others are complete."""
    return click.option(
        name,
        "output_format",
        type=click.Choice([format_.value for format_ in OutputFormat]),
        callback=lambda _context, _parameter, value: OutputFormat(value),
        default=OutputFormat.TABLE.value,
        show_default=True,
        help="How rows are written to standard output.",
    )


def output_option(function: Decorated) -> Decorated:
    """``--output``: write the JSON document to a file instead of standard output."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the whole JSON document to this file.",
    )(function)


class InputPath(click.Path):
    """The path of one run; a store is many."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of a text; refuses a store, whose runs each lie one folder deeper."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if (path / "store.json").is_file():
            raise InputRefused(
                "is a store of many runs, expected one",
                source=path,
                code="is_a_store",
                remedy=f"name a bundle in {path / 'bundles'}, or ask all of its runs with planewise sql",
            )
        return path


def input_argument(function: Decorated) -> Decorated:
    """``INPUT``: one bundle, capture folder or trace file."""
    return click.argument("input_path", metavar="INPUT", type=InputPath())(function)


def warn_of_strays(store: Store) -> None:
    """One line on standard error for everything among the runs of a store that is none."""
    for path in store.strays():
        note(stray_text(path))
    for key, fault in store.faults.items():
        note(f"warning: {printable(key)}: {printable(fault)}")


def stray_text(path: Path) -> str:
    """What is said of a stray."""
    return f"warning: {printable(str(path))} is no run of this store; nothing reads it"


def note(text: str) -> None:
    """One line for people, on standard error."""
    click.echo(text, err=True)


class _Rate(ProgressColumn):
    """How many are done a second."""

    def render(self, task: Task) -> Text:
        """The rate as text, nothing while it is unknown."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.1f}/s")


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """A progress bar on standard error; nothing at all when that is no terminal."""
    console = Console(file=sys.stderr)
    bar = rich.progress.Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(title, total=None)

        def report(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{title} {what[-40:]}")

        yield report
