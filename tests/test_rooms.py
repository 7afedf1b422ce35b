"""The rooms of the house: arrows between them run down only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("recorder", "ingest", "pipeline")
BELOW = {
    "recorder": {"recorder"},
    "ingest": {"recorder", "ingest"},
    "pipeline": {"recorder", "ingest", "pipeline", "sql"},
}
TORCH_MODULES = {
    *("torch_helpers.py", "torch_gradients.py", "torch_storages.py", "torch_record.py", "torch_profile.py"),
    *(
        "torch_known.py",
        "torch_clock.py",
        "torch_lifetimes.py",
        "torch_modules.py",
        "torch_events.py",
        "torch_dispatch.py",
        "torch_timing.py",
    ),
}


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imported(module: Path, room: str, root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """(kind, name) of every import in a module: ``house`` with the room, ``foreign`` with the top package."""
    depth = len(module.relative_to(root / room).parts)
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (("foreign", alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield "foreign", str(node.module).partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            if node.level <= depth:
                yield "house", room
            else:
                names = [node.module] if node.module else [alias.name for alias in node.names]
                yield from (("house", str(name).partition(".")[0]) for name in names)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_itself_and_rooms_below(room: str) -> None:
    allowed = BELOW[room] | {"__version__"}
    upward = {
        (module.name, name)
        for module in modules(room)
        for kind, name in imported(module, room)
        if (kind == "house" and name not in allowed) or (kind == "foreign" and name == "planewise")
    }
    assert upward == set()


def test_the_recorder_needs_the_standard_library_and_pyarrow_alone() -> None:
    foreign = {
        (module.name, name)
        for module in modules("recorder")
        for kind, name in imported(module, "recorder")
        if kind == "foreign" and name not in sys.stdlib_module_names | {"pyarrow"}
    }
    assert {name for _, name in foreign} <= {"torch"}
    assert {module for module, _ in foreign} <= TORCH_MODULES


def test_no_recorder_module_imports_the_torch_helpers() -> None:
    for module in modules("recorder"):
        if module.name not in TORCH_MODULES:
            assert "torch_" not in module.read_text(encoding="utf-8").partition("class ")[0], module.name


def test_the_walk_sees_imports_of_every_form(tmp_path: Path) -> None:
    module = tmp_path / "recorder" / "deep" / "bad.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        "import os.path\nfrom . import a\nfrom ..b import c\nfrom ...ingest.x import y\nfrom ... import pipeline\n"
    )
    assert list(imported(module, "recorder", tmp_path)) == [
        ("foreign", "os"),
        ("house", "recorder"),
        ("house", "recorder"),
        ("house", "ingest"),
        ("house", "pipeline"),
    ]
