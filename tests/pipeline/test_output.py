"""The one output: what each format does with NULL, wide integers, nested values and hostile text."""

from __future__ import annotations

import io
import json
from pathlib import Path

import duckdb
import pytest

from planewise.pipeline.database import connect
from planewise.pipeline.output import OutputFormat, Rows, to_json, write_rows
from planewise.recorder.errors import UsageError


def written(rows: Rows, format_: OutputFormat) -> str:
    out = io.StringIO()
    write_rows(rows, format_, out)
    return out.getvalue()


def test_csv_leaves_null_empty_and_quotes_what_needs_it() -> None:
    rows = Rows(("a", "b", "c"), [(1, None, 'x,"y"'), (0, [1, 2], True)])
    assert written(rows, OutputFormat.CSV) == 'a,b,c\n1,,"x,""y"""\n0,"[1, 2]",true\n'


def test_empty_csv_still_names_its_columns() -> None:
    assert written(Rows(("a", "b"), []), OutputFormat.CSV) == "a,b\n"


def test_json_of_no_rows_is_an_empty_list() -> None:
    assert json.loads(written(Rows(("a",), []), OutputFormat.JSON)) == []


@pytest.mark.parametrize("format_", [OutputFormat.JSON, OutputFormat.NDJSON])
def test_hugeint_columns_are_decimal_strings_whatever_their_value(format_: OutputFormat) -> None:
    con = duckdb.connect()
    con.execute("SELECT 7::HUGEINT AS small, 170141183460469231731687303715884105727 AS large, 9007199254740993 AS big")
    text = written(Rows.fetch(con), format_)
    row = json.loads(text)[0] if format_ is OutputFormat.JSON else json.loads(text)
    assert row == {"small": "7", "large": "170141183460469231731687303715884105727", "big": 9007199254740993}


def test_wide_numbers_inside_other_values_are_decimal_strings_too() -> None:
    con = duckdb.connect()
    con.execute("""
        SELECT [7::HUGEINT, NULL] AS list, [[1.50::DECIMAL(9, 2)]] AS lists, [1::UHUGEINT]::UHUGEINT[1] AS array,
               {'n': 170141183460469231731687303715884105727, 'm': {'k': [2::HUGEINT]}, 'i': 3} AS struct,
               MAP {1::HUGEINT: 4} AS map, MAP {'a': 1.0::DECIMAL(3, 1)} AS other, row(5::HUGEINT, 6) AS unnamed,
               union_value(u := 8::HUGEINT) AS variant, NULL::HUGEINT[] AS absent, [1] AS narrow
    """)
    [row] = json.loads(written(Rows.fetch(con), OutputFormat.JSON))
    assert row == {
        "list": ["7", None],
        "lists": [["1.50"]],
        "array": ["1"],
        "struct": {"n": "170141183460469231731687303715884105727", "m": {"k": ["2"]}, "i": 3},
        "map": {"1": 4},
        "other": {"a": "1.0"},
        "unnamed": ["5", 6],
        "variant": "8",
        "absent": None,
        "narrow": [1],
    }


def test_csv_tells_an_empty_text_from_null() -> None:
    rows = Rows(("a", "b", ""), [(None, "", " ")])
    assert written(rows, OutputFormat.CSV) == 'a,b,""\n,"", \n'


@pytest.mark.parametrize("format_", [OutputFormat.JSON, OutputFormat.NDJSON])
def test_json_with_a_name_twice_is_refused_and_csv_prints_both(format_: OutputFormat) -> None:
    with pytest.raises(UsageError, match="several columns are named a, and a JSON object holds a name once"):
        written(Rows(("a", "b", "a"), [(1, 2, 3)]), format_)
    assert written(Rows(("a", "b", "a"), [(1, 2, 3)]), OutputFormat.CSV) == "a,b,a\n1,2,3\n"


def test_json_has_no_nan() -> None:
    assert json.loads(to_json({"a": float("nan"), "b": float("-inf")})) == {"a": "nan", "b": "-inf"}


def test_table_says_how_many_rows_it_left_out() -> None:
    text = written(Rows(("n",), [(i,) for i in range(70)]), OutputFormat.TABLE)
    assert "50 of 70 rows shown" in text


def test_table_shows_markup_and_control_characters_as_text() -> None:
    text = written(Rows(("name",), [("[red]x[/red]\x1b[31m\n",)]), OutputFormat.TABLE)
    assert "[red]x[/red]\\x1b[31m\\n" in text
    assert "\x1b" not in text


def test_rows_of_dictionaries_keep_absent_values_null() -> None:
    rows = Rows.of([{"a": 1}, {"a": 2, "b": 3}], ("a", "b"))
    assert list(rows.values) == [[1, None], [2, 3]]


def test_a_connection_draws_no_progress_bar_between_the_rows() -> None:
    with connect() as con:
        assert con.execute("SELECT current_setting('enable_progress_bar')").fetchall() == [(False,)]


def test_every_connection_of_the_pipeline_comes_through_one_door() -> None:
    package = Path(__file__).parents[2] / "pipeline"
    found = [path.name for path in package.rglob("*.py") if "duckdb.connect(" in path.read_text()]
    assert found == ["database.py"]
