"""Reading published bundles: manifest, evidence and planes are of one run, and everything else is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundles import packet_of
from store_support import published

from planewise.pipeline import read_bundle
from planewise.pipeline.bundle import second_pass, verify_bundle, write_manifest
from planewise.pipeline.campaign import check_bundle
from planewise.pipeline.cli import run
from planewise.pipeline.compare import compare_bundles
from planewise.pipeline.inputs import open_input
from planewise.pipeline.overview import overview
from planewise.pipeline.packet import decode_packet, encode_packet
from planewise.pipeline.read_bundle import load_bundle
from planewise.pipeline.series import series_of_bundles
from planewise.recorder.errors import IncompatibleInput, InputRefused, VerificationFailed

BAD = {
    "an empty object": "{}",
    "a list": "[]",
    "half an object": "{",
    "no UTF-8": b"\xff",
    "nothing": "",
    "another schema": '{"schema": "planewise/evidence/9"}',
    "the schema alone": '{"schema": "planewise/evidence/1"}',
    "too deep": "[" * 100_000,
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One published run, its evidence replaced and sealed again by each test."""
    return published(tmp_path_factory.mktemp("published"))


def reseal(bundle: Path, content: bytes | str | None, run_id: str = "r1") -> Path:
    """Put other evidence into a bundle (None: none), as one would who tampers well."""
    file = bundle / "evidence.json"
    file.unlink(missing_ok=True)
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    write_manifest(bundle, run_id)
    return bundle


def without(packet: dict[str, Any], path: str) -> dict[str, Any]:
    """The packet without one member, or with a text in its place for a path that ends in ``!``."""
    copy: dict[str, Any] = json.loads(json.dumps(packet))
    *parents, last = path.rstrip("!").split(".")
    place = copy
    for name in parents:
        place = place[name]
    place[last] = "x"
    if not path.endswith("!"):
        del place[last]
    return copy


def test_a_published_bundle_is_loaded_whole(tmp_path: Path) -> None:
    loaded = load_bundle(published(tmp_path))
    assert loaded.receipt.run_id == loaded.packet["provenance"]["run_id"] == "r1"
    assert loaded.run.column("run_id").to_pylist() == ["r1"]


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_what_is_no_packet_is_refused_with_exit_code_3_by_every_reader(
    bundle: Path, content: bytes | str, capsys: pytest.CaptureFixture[str]
) -> None:
    reseal(bundle, content)
    path = str(bundle)
    with pytest.raises(InputRefused, match=r"evidence\.json"):
        load_bundle(bundle)
    for command in (["overview", path], ["query", path, "--kind", "health"], ["series", "--bundle", path]):
        assert run(command) == 3, command
        assert "evidence.json" in capsys.readouterr().err
    with pytest.raises(InputRefused, match=r"evidence\.json"):
        compare_bundles([bundle], [bundle])
    assert "evidence.json" in str(check_bundle("b", bundle).message)


def test_missing_evidence_is_refused(bundle: Path) -> None:
    with pytest.raises(InputRefused, match=r"evidence\.json cannot be read"):
        load_bundle(reseal(bundle, None))


def test_another_format_is_named_beside_the_known_one(bundle: Path) -> None:
    with pytest.raises(IncompatibleInput, match=r"'planewise/evidence/9'; this planewise knows planewise/evidence/1"):
        load_bundle(reseal(bundle, BAD["another schema"]))


@pytest.mark.parametrize(
    "path",
    [
        "provenance",
        "provenance.run_id",
        "health.issues",
        "health.issues.total!",
        "capabilities!",
        "findings!",
        "gaps.rows!",
        "timing!",
        "memory!",
        "activations.rankings.host",
        "gpu!",
    ],
)
def test_a_packet_that_lacks_a_member_or_has_another_type_is_refused(path: str) -> None:
    with pytest.raises(InputRefused, match="no evidence packet"):
        decode_packet(encode_packet(without(packet_of("r1"), path)), "b")


def test_evidence_of_another_run_is_refused(bundle: Path) -> None:
    with pytest.raises(InputRefused, match="evidence is of run 'other', the manifest names run 'r1'") as caught:
        load_bundle(reseal(bundle, encode_packet(packet_of("other"))))
    assert caught.value.code == "other_run"


def test_a_manifest_of_another_run_is_refused(bundle: Path) -> None:
    with pytest.raises(InputRefused, match=r"runs plane holds \['r1'\], the manifest names run 'r2'"):
        load_bundle(reseal(bundle, encode_packet(packet_of("r2")), "r2"))


@pytest.mark.parametrize("name", ["evidence.json", "planes/runs.parquet", "bundle.json"])
def test_a_bundle_that_changes_while_it_is_loaded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    bundle = published(tmp_path)

    def changing(path: Path, receipt: Any, consumed: list[str]) -> None:
        (bundle / name).write_bytes((bundle / name).read_bytes() + b" ")
        second_pass(path, receipt, consumed)

    monkeypatch.setattr(read_bundle, "second_pass", changing)
    with pytest.raises(VerificationFailed):
        load_bundle(bundle)


def look(bundle: Path, ask: Callable[[Any], object]) -> None:
    with open_input(bundle) as opened:
        ask(opened)
        (bundle / "planes" / "spans.parquet").write_bytes(b"changed")


def test_planes_that_change_under_a_question_are_refused_and_the_overview_reads_none(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    before = (bundle / "planes" / "spans.parquet").read_bytes()
    look(bundle, overview)
    (bundle / "planes" / "spans.parquet").write_bytes(before)
    with pytest.raises(VerificationFailed, match=r"spans\.parquet"):
        look(bundle, lambda opened: opened.con.execute("FROM spans").fetchall())


def test_an_error_of_the_question_is_not_hidden_by_the_last_check(tmp_path: Path) -> None:
    bundle = published(tmp_path)

    def fail(opened: Any) -> None:
        opened.con.execute("FROM spans")
        (bundle / "planes" / "spans.parquet").write_bytes(b"changed")
        raise LookupError

    with pytest.raises(LookupError):
        look(bundle, fail)


def test_a_series_reads_bundles_that_load(tmp_path: Path) -> None:
    bundle = published(tmp_path)
    assert verify_bundle(bundle).run_id == series_of_bundles([bundle])["inputs"][0]["run_id"]
