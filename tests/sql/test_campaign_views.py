"""Campaign and series views over several campaigns and runs at once."""

from __future__ import annotations

from support import TinyStore


def plan(tiny: TinyStore, campaign: str, *planned: tuple[int, str]) -> None:
    for position, (step, bundle) in enumerate(planned):
        row = {"campaign_id": campaign, "entrypoint": "demo", "position": position, "capture_step": step}
        tiny.add("campaign_planned", {**row, "bundle": bundle, "run_id": None})


def check(tiny: TinyStore, campaign: str, bundle: str, run_id: str | None, message: str | None = None) -> None:
    digest = None if message else "0" * 64
    row = {"campaign_id": campaign, "bundle": bundle, "manifest_sha256": digest, "message": message, "run_id": run_id}
    tiny.add("bundle_checks", row)


def test_campaigns_are_judged_apart(tiny: TinyStore) -> None:
    tiny.run("r")
    plan(tiny, "x", (3, "a"), (4, "b"))
    plan(tiny, "y", (3, "a"))
    check(tiny, "x", "a", "r")
    rows = tiny.rows("SELECT campaign_id, bundle, state FROM campaign_status ORDER BY ALL")
    assert rows == [("x", "a", "published"), ("x", "b", "missing"), ("y", "a", "missing")]
    counts = tiny.rows("SELECT * FROM campaign_counts ORDER BY campaign_id")
    assert counts == [("x", "demo", 2, 1, 1, 0), ("y", "demo", 1, 0, 1, 0)]


def test_a_bundle_that_failed_verification_is_that_whatever_its_run_is(tiny: TinyStore) -> None:
    tiny.run("r", entrypoint="other")
    plan(tiny, "x", (3, "a"), (3, "b"))
    check(tiny, "x", "a", "r", "torn")
    check(tiny, "x", "b", "unknown")
    rows = tiny.rows("SELECT state, message, manifest_sha256 FROM campaign_status ORDER BY position")
    assert rows == [
        ("verification_failed", "torn", None),
        ("verification_failed", "no run of the bundle could be read", "0" * 64),
    ]


def test_one_step_may_be_planned_many_times(tiny: TinyStore) -> None:
    for run_id in ("r0", "r1"):
        tiny.run(run_id)
        check(tiny, "x", run_id, run_id)
    plan(tiny, "x", (3, "r0"), (3, "r1"))
    assert tiny.rows("SELECT published FROM campaign_counts") == [(2,)]


def test_a_run_without_a_measured_span_has_a_series_row_without_wall_time(tiny: TinyStore) -> None:
    tiny.run("r", capture_step=7)
    assert tiny.rows("FROM series_outer_wall_time") == [("demo", "infer", 7, "r", None)]
