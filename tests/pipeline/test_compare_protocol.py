"""The page of protocol parity names what there is: every code in its order, and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compare-protocol.md"
ROW = re.compile(r"^\| (\d+) \| `(\w+)` \|.*\| `(test_\w+)` \|$", re.MULTILINE)
SOURCES = ("receipt_reasons", "run_reasons", "set_reasons", "implementations", "pairing")
NO_CODES = {"production_equivalent", "unknown", "cpu", "baseline", "candidate"}


def test_every_reason_code_of_the_sql_is_on_the_page_once() -> None:
    listed = [code for _, code, _ in ROW.findall(PAGE.read_text())]
    texts = [
        (ROOT / "sql" / "comparison" / f"_comparison_{name}.sql").read_text().split("COMMENT ON")[0] for name in SOURCES
    ]
    found = {code for text in texts for code in re.findall(r"'([a-z]+(?:_[a-z]+)*)'", text)}
    assert sorted(listed) == sorted(found - NO_CODES)


def test_items_come_in_order_and_their_tests_exist() -> None:
    rows = ROW.findall(PAGE.read_text())
    assert [int(item) for item, _, _ in rows] == sorted(int(item) for item, _, _ in rows)
    tests = (ROOT / "tests" / "sql" / "test_comparison_reasons.py").read_text()
    assert [name for _, _, name in rows if f"def {name}(" not in tests] == []


def test_files_of_tests_exist() -> None:
    files = re.findall(r"`(tests/[\w/.]+)`", PAGE.read_text())
    assert files
    assert [file for file in files if not (ROOT / file).exists()] == []
