"""The protocol document lists what there is."""

from __future__ import annotations

import re
from pathlib import Path

from planewise.pipeline.protocol import SCHEMAS, protocol_document

ROOT = Path(__file__).parents[2]
IDENTIFIER = re.compile(r'"(planewise/[a-z-]+/[0-9]+)"')


def test_every_schema_identifier_of_the_source_is_listed() -> None:
    listed = {one for value in SCHEMAS.values() for one in (value if isinstance(value, list) else [value])}
    files = [path for room in ("recorder", "ingest", "pipeline") for path in (ROOT / room).rglob("*.py")]
    found = {name for path in files for name in IDENTIFIER.findall(path.read_text())}
    assert "planewise/comparison/1" in found
    assert found <= listed


def test_commands_come_by_name() -> None:
    document = protocol_document({"b": "second", "a": "first"})
    assert document["commands"] == [{"name": "a", "about": "first"}, {"name": "b", "about": "second"}]
