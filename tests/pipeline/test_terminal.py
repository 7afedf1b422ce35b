"""On a real terminal of 80 columns: progress while work lasts, tables that fit, no colour where none is wanted."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from planewise.pipeline.cli import run

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "examples" / "captures"
ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def on_terminal(*words: str, **environment: str) -> tuple[int, str]:
    """Exit code and all that the command wrote to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    code = "import sys; from planewise.pipeline.cli import main; main(sys.argv[1:])"
    own = {**os.environ, "COLUMNS": "80", "LINES": "40", "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=own
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # The other end is closed.
            break
        if not part:
            break
        written += part
    os.close(ours)
    return process.wait(), written.decode()


def test_ingest_shows_how_fast_it_is_and_how_long_it_lasts(tmp_path: Path) -> None:
    code, written = on_terminal("ingest", str(CAPTURES), "--store", str(tmp_path / "store"))
    assert code == 3
    plain = ANSI.sub("", written)
    assert re.search(r"ingest \S+ .*\d+/23", plain)
    assert re.search(r"\d/s", plain)


def test_nothing_of_the_progress_reaches_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(["ingest", str(CAPTURES / "eager-01"), "--store", str(tmp_path / "store")])
    written = capfd.readouterr()
    assert "\x1b" not in written.out + written.err
    assert "/s" not in written.err


@pytest.mark.parametrize(
    "words",
    [
        ("overview", str(CAPTURES / "eager-profile-01")),
        ("top", str(CAPTURES / "eager-profile-01")),
        ("query", str(CAPTURES / "eager-profile-01"), "--kind", "activations"),
        ("schema",),
        ("schema", "activation_hotspots"),
    ],
)
def test_tables_fit_eighty_columns(words: tuple[str, ...]) -> None:
    code, written = on_terminal(*words)
    lines = ANSI.sub("", written).splitlines()
    assert code == 0
    assert lines
    assert [line for line in lines if len(line) > 80] == []


def test_no_colour_is_written_where_none_is_wanted() -> None:
    code, written = on_terminal("schema", NO_COLOR="1")
    assert code == 0
    assert re.search(r"\x1b\[[0-9;]*3[0-7]m", written) is None


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_completion_is_printed_for_each_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "_PLANEWISE_COMPLETE" in capsys.readouterr().out
