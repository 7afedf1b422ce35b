"""The ledger of a foreign trace adds up to the rows of its planes, or the audit says where it does not."""

from __future__ import annotations

from device_support import op, traced, work

from planewise.recorder.planes import PLANES
from support import TinyStore

ABOUT_THE_SOURCE = {"runs", "attachments", "ingest_issues", "ingest_counts"}
AUDIT = "SELECT * EXCLUDE (run_id) FROM ingest_audit ORDER BY plane NULLS LAST"


def counted(store: TinyStore, plane: str | None, fate: str, records: int, run_id: str = "r1") -> None:
    reason = None if fate == "kept" else "why"
    row = {"file": "t.json", "kind": "X", "fate": fate, "plane": plane, "reason": reason, "records": records}
    store.add("ingest_counts", row, run_id=run_id)


def test_kept_and_repaired_records_are_the_rows_of_their_plane(tiny: TinyStore) -> None:
    traced(tiny)
    op(tiny, "a")
    op(tiny, "b")
    work(tiny, 0, 1)
    counted(tiny, "ops", "kept", 1)
    counted(tiny, "ops", "repaired", 1)
    counted(tiny, "device_intervals", "kept", 2)
    counted(tiny, None, "dropped", 5)
    counted(tiny, None, "kept", 3)
    assert tiny.rows(AUDIT) == [
        ("device_intervals", 2, 2, 0, 0, 1, False),
        ("ops", 2, 1, 1, 0, 2, True),
        (None, 8, 3, 0, 5, None, True),
    ]


def test_a_plane_the_ledger_names_and_that_has_no_row_is_not_balanced(tiny: TinyStore) -> None:
    counted(traced(tiny), "spans", "kept", 1)
    assert tiny.rows(AUDIT) == [("spans", 1, 1, 0, 0, 0, False)]


def test_a_plane_the_ledger_never_names_is_not_judged(tiny: TinyStore) -> None:
    op(traced(tiny), "a")
    counted(tiny, None, "kept", 1)
    assert tiny.rows(AUDIT) == [("ops", None, None, None, None, 1, None), (None, 1, 1, 0, 0, None, True)]


def test_a_fate_of_no_known_name_is_not_balanced(tiny: TinyStore) -> None:
    op(traced(tiny), "a")
    counted(tiny, "ops", "lost", 1)
    assert tiny.rows(AUDIT) == [("ops", 1, 0, 0, 0, 1, False)]


def test_a_run_without_a_ledger_is_not_audited(tiny: TinyStore) -> None:
    op(tiny.run(), "a")
    assert tiny.rows(AUDIT) == []


def test_every_plane_of_records_is_audited(tiny: TinyStore) -> None:
    for plane in PLANES.keys() - ABOUT_THE_SOURCE:
        counted(tiny, plane, "kept", 0)
        schema = PLANES[plane].schema
        values = ", ".join("'r1'" if field.name == "run_id" else "NULL" for field in schema)
        tiny.con.execute(f"INSERT INTO {plane} SELECT {values}")
    found = {plane: rows for plane, *_, rows, _ in tiny.rows(AUDIT)}
    assert found == dict.fromkeys(PLANES.keys() - ABOUT_THE_SOURCE, 1)
