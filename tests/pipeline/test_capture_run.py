"""CaptureRun: one planned capture, published once at its destination, kept beside it when anything fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from store_support import published, tree

from planewise import CaptureRun, ProfileRun
from planewise.pipeline import capture_run as module
from planewise.pipeline.bundle import verify_bundle, verify_semantic, write_manifest
from planewise.recorder.errors import (
    Conflict,
    ContractError,
    InputRefused,
    PlanewiseError,
    UsageError,
    VerificationFailed,
)

RUN = ProfileRun.training("demo", 3, "cpu")


def begin(destination: Path, run: ProfileRun = RUN) -> CaptureRun:
    """A capture that is active."""
    begun = CaptureRun.begin(destination, run)
    assert begun.active is not None
    assert begun.already_published is None
    return begun.active


def capture(destination: Path, run: ProfileRun = RUN) -> CaptureRun:
    """A capture with its measured span, ready to be published."""
    active = begin(destination, run)
    active.session.begin_measurement("step").__enter__().__exit__(None, None, None)
    return active


def hidden(folder: Path) -> list[str]:
    """The hidden entries of a folder."""
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def test_a_finished_capture_is_one_verified_bundle_and_nothing_else(tmp_path: Path) -> None:
    destination = tmp_path / "new" / "bundle"
    receipt = capture(destination).publish()
    assert (receipt.status, receipt.bundle_path) == ("published", str(destination))
    assert verify_semantic(destination) == receipt.verification
    assert os.listdir(destination.parent) == ["bundle"]
    assert pq.read_table(destination / "planes" / "runs.parquet")["outcome"].to_pylist() == ["complete"]


def test_while_it_is_recorded_only_a_hidden_folder_lies_beside_the_destination(tmp_path: Path) -> None:
    active = begin(tmp_path / "bundle")
    assert os.listdir(tmp_path) == [active.staging_capture.name]
    assert active.staging_capture.name.startswith(f".bundle.capture-{os.getpid()}-")
    active.session.finish()


def test_a_retry_of_the_same_plan_records_nothing_and_gets_a_fresh_receipt(tmp_path: Path) -> None:
    first = capture(tmp_path / "bundle").publish()
    before = tree(tmp_path)
    again = CaptureRun.begin(tmp_path / "bundle", RUN.tag("retry", "yes"))
    assert again.active is None
    assert again.already_published is not None
    assert (again.already_published.status, again.already_published.run_id) == ("already_published", first.run_id)
    assert again.already_published.verification == first.verification
    assert tree(tmp_path) == before


def test_another_plan_at_the_destination_is_a_conflict_that_names_the_fields_in_order(tmp_path: Path) -> None:
    capture(tmp_path / "bundle").publish()
    with pytest.raises(Conflict, match="fields differ: entrypoint, correlation_id, phase, capture_step, device;"):
        CaptureRun.begin(tmp_path / "bundle", ProfileRun.inference("other", 4, "cuda:0"))
    with pytest.raises(Conflict, match="fields differ: device;"):
        CaptureRun.begin(tmp_path / "bundle", ProfileRun.training("demo", 3, "cuda:0"))
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("what", ["file", "empty folder", "dangling link", "tampered bundle"])
def test_what_is_no_sound_bundle_is_never_reused_or_overwritten(tmp_path: Path, what: str) -> None:
    destination = tmp_path / "bundle"
    if what == "file":
        destination.write_text("x")
    elif what == "empty folder":
        destination.mkdir()
    elif what == "dangling link":
        destination.symlink_to("nowhere")
    else:
        capture(destination).publish()
        (destination / "extra").write_text("x")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(VerificationFailed):
        CaptureRun.begin(destination, RUN)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_manifest_that_names_another_run_than_the_planes_is_refused(tmp_path: Path) -> None:
    capture(tmp_path / "bundle").publish()
    write_manifest(tmp_path / "bundle", "someone else")
    with pytest.raises(VerificationFailed, match="names run 'someone else'"):
        CaptureRun.begin(tmp_path / "bundle", RUN)


def test_no_bundle_is_begun_inside_a_bundle(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    with pytest.raises(UsageError, match="inside the published bundle"):
        CaptureRun.begin(bundle / "planes" / "mine", RUN)


def test_only_the_folders_of_a_relative_path_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "bundle.json").write_text("{}")
    monkeypatch.chdir(tmp_path / "work")
    assert capture(Path("bundle")).publish().status == "published"


@pytest.mark.parametrize("path", ["..", "a/..", "/"])
def test_a_destination_without_a_name_is_wrong_use(path: str) -> None:
    with pytest.raises(UsageError, match="no name"):
        CaptureRun.begin(path, RUN)


def test_an_invalid_plan_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ContractError):
        CaptureRun.begin(tmp_path / "bundle", ProfileRun.training(" ", 3, "cpu"))
    assert os.listdir(tmp_path) == []


def test_a_failed_capture_is_published_with_its_reason_and_reconciles(tmp_path: Path) -> None:
    receipt = capture(tmp_path / "bundle").publish_failed("out of memory")
    assert receipt.status == "published"
    row = pq.read_table(tmp_path / "bundle" / "planes" / "runs.parquet").to_pylist()[0]
    assert (row["outcome"], row["failure_reason"]) == ("failed", "out of memory")
    assert CaptureRun.begin(tmp_path / "bundle", RUN).already_published is not None


def test_a_concurrent_retry_that_was_faster_wins(tmp_path: Path) -> None:
    slow, fast = capture(tmp_path / "bundle"), capture(tmp_path / "bundle")
    winner = fast.publish()
    receipt = slow.publish()
    assert (receipt.status, receipt.run_id) == ("already_published", winner.run_id)
    assert os.listdir(tmp_path) == ["bundle"]


def test_a_retry_that_wins_during_publication_is_met_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, fast = capture(tmp_path / "bundle"), capture(tmp_path / "bundle")
    build = CaptureRun._publish_bundle

    def late(self: CaptureRun) -> object:
        if self is slow:
            fast.publish()
        return build(self)

    monkeypatch.setattr(CaptureRun, "_publish_bundle", late)
    assert slow.publish().status == "already_published"
    assert os.listdir(tmp_path) == ["bundle"]


def test_a_failed_publication_keeps_the_capture_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    active = capture(tmp_path / "bundle")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, "publish_folder", full)
        with pytest.raises(PlanewiseError, match=r"No space left.*; the capture stays at .*/\.bundle\.capture-"):
            active.publish()
    assert hidden(tmp_path) == [active.staging_capture.name]
    assert not (tmp_path / "bundle").exists()
    assert active.publish().status == "published"


def test_a_capture_with_open_spans_cannot_be_published_and_stays(tmp_path: Path) -> None:
    active = begin(tmp_path / "bundle")
    guard = active.session.begin_span("open")
    with pytest.raises(ContractError, match="the capture stays at"):
        active.publish()
    assert hidden(tmp_path) == [active.staging_capture.name]
    assert active.publish_failed("gave up").status == "published"
    assert guard is not None


def test_nsight_files_are_kept_in_the_bundle_and_listed(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "b.csv").write_text("2")
    (reports / "a.csv").write_text("1")
    capture(tmp_path / "bundle").with_nsight_dir(reports).publish()
    rows = pq.read_table(tmp_path / "bundle" / "planes" / "attachments.parquet").to_pylist()
    assert [(row["path"], row["bytes"]) for row in rows] == [("nsight/a.csv", 1), ("nsight/b.csv", 1)]
    assert (tmp_path / "bundle" / "nsight" / "b.csv").read_text() == "2"
    verify_bundle(tmp_path / "bundle")


def test_an_empty_nsight_directory_is_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    capture(tmp_path / "bundle").with_nsight_dir(tmp_path / "reports").publish()
    assert os.listdir(tmp_path / "bundle" / "nsight") == []


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "absent"])
def test_nsight_directories_that_are_not_flat_are_refused(tmp_path: Path, kind: str) -> None:
    reports = tmp_path / "reports"
    if kind != "absent":
        reports.mkdir()
        (reports / "a.csv").write_text("1")
    make = {"folder": Path.mkdir, "link": lambda p: p.symlink_to("a.csv"), "pipe": os.mkfifo, "absent": lambda p: None}
    make[kind](reports / "x")
    active = capture(tmp_path / "bundle").with_nsight_dir(reports)
    with pytest.raises(PlanewiseError, match="the capture stays at") as caught:
        active.publish()
    assert isinstance(caught.value, InputRefused) == (kind != "absent")
    assert not (tmp_path / "bundle").exists()
    assert hidden(tmp_path) == [active.staging_capture.name]


def test_the_context_manager_publishes_at_the_end_of_the_block(tmp_path: Path) -> None:
    with begin(tmp_path / "bundle") as active, active.session.begin_measurement("step"):
        pass
    assert active.publication is not None
    assert active.publication.status == "published"
    with pytest.raises(ContractError):
        active.session.finish()


def test_an_exception_publishes_a_failed_capture_and_passes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyError), begin(tmp_path / "bundle"):
        raise KeyError("lost")
    row = pq.read_table(tmp_path / "bundle" / "planes" / "runs.parquet").to_pylist()[0]
    assert (row["outcome"], row["failure_reason"]) == ("failed", "KeyError: 'lost'")


def test_a_session_that_was_ended_by_hand_is_still_published(tmp_path: Path) -> None:
    with begin(tmp_path / "bundle") as active:
        active.session.finish_failed("by hand")
    packet = json.loads((tmp_path / "bundle" / "evidence.json").read_text())
    assert packet["health"]["capture_complete"] is False


def test_open_spans_at_the_end_of_the_block_publish_as_failed_and_raise(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="spans still open"), begin(tmp_path / "bundle") as active:
        guard = active.session.begin_span("open")
    assert pq.read_table(tmp_path / "bundle" / "planes" / "runs.parquet")["outcome"].to_pylist() == ["failed"]
    assert guard is not None


def test_a_training_process_that_captures_loads_no_analysis_before_it_publishes() -> None:
    code = "import sys, planewise; planewise.CaptureRun.begin; print({'duckdb', 'polars'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
