"""The user's pages are true: their samples run in order, and the commands that they name exist.

In the pages of ``PAGES`` every ```python block and every ```sh block runs, a page's blocks one after the
other, in one namespace and one empty folder. A ```sh block holds ``planewise`` commands alone; a trailing ``# exit N``
says which exit code is expected. Other blocks, and code inside a line, are not run: their commands are looked up.
"""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from planewise.pipeline.cli import cli, run

ROOT = Path(__file__).parents[1]
PAGES = (
    *("README.md", "docs/guide.md", "docs/traces.md", "docs/record-torch.md", "docs/compare.md"),
    *("docs/infer.md", "docs/report.md", "docs/export.md", "docs/shared-service.md"),
)
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^(?: {4,}.*)?\n)+", re.MULTILINE)
INLINE = re.compile(r"`(planewise [^`\n]+)`")
EXIT = re.compile(r"\s+# exit (\d+)$")
SHELL_WORDS = {"|", "||", "&&", ";", ">", "<"}


def blocks(page: str) -> Iterator[tuple[str, int, str]]:
    """(language, line of the first row, text) of every fenced block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield match[2], text.count("\n", 0, match.start(3)) + 1, match[3]


def commands(code: str) -> list[str]:
    """The lines of a shell block, continuation lines joined."""
    return [line.strip() for line in code.replace("\\\n", " ").splitlines() if line.strip()]


def named_commands() -> list[tuple[str, str]]:
    """Every ``planewise`` command in a block or in a line of the pages."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        lines = [line for language, _, code in blocks(page) if language != "python" for line in commands(code)]
        rest = FENCE.sub("", text)
        lines += [line for block in INDENTED.findall(rest) for line in commands(block)]
        lines += INLINE.findall(rest)
        found += [(page, EXIT.sub("", line)) for line in lines if line.startswith("planewise ")]
    return found


def run_command(line: str, where: str) -> None:
    expected = EXIT.search(line)
    program, *words = shlex.split(EXIT.sub("", line))
    assert program == "planewise", f"{where}: a sh block holds planewise commands alone, found {line}"
    arguments = [path for word in words for path in sorted(glob.glob(word)) or [word]]
    assert run(arguments) == (int(expected[1]) if expected else 0), f"{where}: {line}"


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        pytest.param("docs/guide.md", marks=pytest.mark.slow),
        "docs/traces.md",
        "docs/record-torch.md",
        "docs/compare.md",
        "docs/infer.md",
        "docs/report.md",
        "docs/export.md",
    ],
)
def test_the_samples_of_a_page_run_in_order(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "import torch" in (ROOT / page).read_text(encoding="utf-8"):
        pytest.importorskip("torch", reason="the torch extra is not installed")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "sample"}
    for language, line, code in blocks(page):
        if language == "python":  # Empty lines before it: a traceback then names the page's own line.
            exec(compile("\n" * (line - 1) + code, page, "exec"), namespace)
        elif language == "sh":
            for command in commands(code):
                run_command(command, f"{page}:{line}")


@pytest.mark.parametrize(("page", "line"), named_commands())
def test_every_command_that_a_page_names_exists_with_its_options(page: str, line: str) -> None:
    command: click.Command = cli
    for word in shlex.split(line)[1:]:
        if word in SHELL_WORDS:
            break
        if isinstance(command, click.Group):
            known = command.commands.get(word)
            assert known or word.startswith("-"), f"{page}: planewise has no command {word}"
            command = known or command
        if word.startswith("-") and word != "-":
            with click.Context(command) as context:
                options = {name for parameter in command.get_params(context) for name in parameter.opts}
            assert word.partition("=")[0] in options, f"{page}: {command.name} has no option {word}"


def test_the_pages_name_commands_and_keep_their_lines_short() -> None:
    assert {page for page, _ in named_commands()} == set(PAGES)
    long = [f"{page}: {line}" for page in PAGES for line in (ROOT / page).read_text().splitlines() if len(line) > 120]
    assert not long


def walked(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command below, groups themselves left out."""
    if isinstance(command, click.Group):
        for own, below in command.commands.items():
            yield from walked(below, f"{name} {own}")
    else:
        yield name, command


def test_the_help_of_every_command_has_an_example() -> None:
    without = [name for name, command in walked(cli, "planewise") if "Example" not in (command.help or "")]
    assert without == []


def test_every_page_is_in_the_site() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == {path for path in pages if path.startswith("formats/")} - {"formats/README.md"}
