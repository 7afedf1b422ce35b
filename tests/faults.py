"""What the stages make of faults, with real processes and files: prints a table of fault, tries, lost, wrong.

Run: ``python tests/faults.py [--tries N] [--seed S] [FAULT ...]``. After each fault the stages run once more, as the
next night would. *Lost* counts runs that are then no bundle, *wrong* counts bundles that are not, byte for byte, those
of an undisturbed night, stores that do not verify, messages that show a traceback, and faults that went unnoticed. Exit
code 1 when anything was lost or wrong. Some faults need root (a small tmpfs, another user) and are left out without it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from store_support import write_trace

from planewise.pipeline.bundle import verify_bundle
from planewise.pipeline.cli import run as command
from planewise.pipeline.store import Store
from planewise.recorder.errors import PlanewiseError

RUNS = tuple(f"r{number}" for number in range(4))
Outcome = tuple[int, int, int]
"""Tries, lost, wrong."""
NOBODY = 65534


class Place:
    """A fresh store and its sources in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.sources = [write_trace(folder / "in" / f"{run_id}.jsonl", run_id) for run_id in RUNS]
        self.plan = folder / "campaign.json"
        planned = [{"capture_step": 3, "run_id": run_id} for run_id in RUNS]
        document = {"schema": "planewise/campaign/1", "campaign_id": "c", "entrypoint": "demo::train"}
        self.plan.write_text(json.dumps(document | {"planned": planned}))

    def words(self, stage: str) -> list[str]:
        """The command line of a stage."""
        more = {"ingest": [str(folder) for folder in self.sources], "publish": ["--no-viewer"]}
        more["nightly"] = [*more["ingest"], "--campaign", str(self.plan), "--no-viewer"]
        return [stage, *more.get(stage, []), "--store", str(self.store)]

    def begin(self, stage: str, user: int | None = None, before: Callable[[], None] | None = None) -> int:
        """Run a stage in a child; its process id. What it says goes to ``said``."""
        child = os.fork()
        if child:
            return child
        code = 70
        try:
            if user is not None:
                os.setresuid(user, user, user)
            if before is not None:
                before()
            said = open(self.folder / "said", "w")  # noqa: SIM115  _exit closes it.
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                code = command(self.words(stage))
            said.flush()
        finally:
            os._exit(code)

    def stage(self, stage: str, **how: object) -> int:
        """Run a stage in a child and wait; its exit code."""
        return os.waitstatus_to_exitcode(os.waitpid(self.begin(stage, **how), 0)[1])  # type: ignore[arg-type]

    def said(self) -> str:
        """What the last stage said."""
        path = self.folder / "said"
        return path.read_text(errors="replace") if path.exists() else ""

    def finish(self) -> None:
        """Whatever is left to do, as the next night does it."""
        self.stage("nightly")

    def judge(self, expected: dict[str, str]) -> tuple[int, int]:
        """Lost and wrong."""
        found = {}
        wrong = 0
        for bundle in Store.open(self.store).bundles():
            try:
                found[bundle.run_id] = verify_bundle(bundle.path).manifest_sha256
            except PlanewiseError:
                wrong += 1
        wrong += sum(digest != expected.get(run_id) for run_id, digest in found.items())
        return len(expected.keys() - found.keys()), wrong + self.unsound()

    def unsound(self) -> int:
        """1 unless doctor finds nothing and nothing half-written is left."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            code = command(["doctor", "--store", str(self.store), "--format", "json"])
        left = list((self.store / "tmp").iterdir())
        return int(code != 0 or bool(left))


@contextlib.contextmanager
def place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="planewise-faults-") as folder:
        yield Place(Path(folder))


def undisturbed() -> tuple[dict[str, str], dict[str, float]]:
    """Run id -> digest of the manifest after a night without a fault, and the seconds of each stage."""
    seconds = {}
    with place() as here:
        for stage in ("ingest", "qualify", "publish", "requalify", "nightly"):
            begun = time.monotonic()
            assert here.stage(stage) == 0, here.said()
            seconds[stage] = time.monotonic() - begun
        found = {bundle.run_id: verify_bundle(bundle.path) for bundle in Store.open(here.store).bundles()}
        return {run_id: receipt.manifest_sha256 for run_id, receipt in found.items()}, seconds


def killed(stage: str, tries: int, chance: random.Random) -> Outcome:
    """SIGKILL at a random instant of a stage."""
    expected, seconds = undisturbed()
    lost = wrong = 0
    for _ in range(tries):
        with place() as here:
            for earlier in itertools.takewhile(lambda one: one != stage, ("ingest", "qualify", "publish", "requalify")):
                if stage != "nightly":
                    here.stage(earlier)
            child = here.begin(stage)
            time.sleep(chance.uniform(0, seconds[stage] * (2.5 if stage == "nightly" else 1.2)))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            here.finish()
            outcome = here.judge(expected)
            lost, wrong = lost + outcome[0], wrong + outcome[1]
    return tries, lost, wrong


def several_writers(tries: int, chance: random.Random) -> Outcome:
    """Two nightlies, a publisher and a requalifier at once, of which one or two are killed."""
    expected, seconds = undisturbed()
    lost = wrong = 0
    for _ in range(tries):
        with place() as here:
            here.stage("ingest")
            children = [here.begin(stage) for stage in ("nightly", "nightly", "publish", "requalify")]
            for child in chance.sample(children, chance.randint(1, 2)):
                time.sleep(chance.uniform(0, seconds["nightly"]))
                os.kill(child, signal.SIGKILL)
            for child in children:
                os.waitpid(child, 0)
            here.finish()
            outcome = here.judge(expected)
            lost, wrong = lost + outcome[0], wrong + outcome[1]
    return tries, lost, wrong


def disk_full(tries: int, chance: random.Random) -> Outcome:
    """A tmpfs of some kilobytes too few; room is made before the next night."""
    expected, _ = undisturbed()
    lost = wrong = full = 0
    for _ in range(tries):
        with place() as here:
            here.store.mkdir()
            size = chance.randrange(300, 1400)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", str(here.store)], check=True)
            try:
                code = here.stage("nightly")
                full += code != 0
                wrong += "Traceback" in here.said() or (code != 0 and "space" not in here.said())
                subprocess.run(["mount", "-o", "remount,size=64m", str(here.store)], check=True)
                here.finish()
                outcome = here.judge(expected)
                lost, wrong = lost + outcome[0], wrong + outcome[1]
            finally:
                subprocess.run(["umount", str(here.store)], check=True)
    return tries, lost, wrong + (full == 0)


def permission_denied(tries: int, chance: random.Random) -> Outcome:
    """Another user, for whom a folder of the store is closed at a random instant of the night."""
    expected, seconds = undisturbed()
    lost = wrong = 0
    for _ in range(tries):
        with place() as here:
            here.folder.chmod(0o755)
            Store.open(here.store, create=True)
            _own(here.folder, NOBODY)
            closed = here.store / chance.choice(("staging", "bundles", "tmp", "results", "campaigns", "tables"))
            child = here.begin("nightly", user=NOBODY)
            time.sleep(chance.uniform(0, seconds["nightly"] * 2.5))
            closed.mkdir(exist_ok=True)
            os.chown(closed, 0, 0)
            closed.chmod(0o555)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            wrong += code == 70 or "Traceback" in here.said()
            _own(here.folder, NOBODY)
            closed.chmod(0o755)
            here.stage("nightly", user=NOBODY)
            _own(here.folder, 0)
            outcome = here.judge(expected)
            lost, wrong = lost + outcome[0], wrong + outcome[1]
    return tries, lost, wrong


def _own(folder: Path, user: int) -> None:
    subprocess.run(["chown", "-R", f"{user}:{user}", str(folder)], check=True)


def flipped_bits(tries: int, chance: random.Random) -> Outcome:
    """One bit of one file of a bundle: verify must name the file."""
    wrong = count = 0
    with place() as here:
        here.finish()
        bundle = Store.open(here.store).bundles()[0].path
        files = sorted(path for path in bundle.rglob("*") if path.is_file())
        for path in files:
            content = path.read_bytes()
            for _ in range(max(tries // len(files), 1)):
                altered = bytearray(content)
                altered[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
                path.chmod(0o644)
                path.write_bytes(altered)
                count += 1
                try:
                    verify_bundle(bundle)
                    wrong += 1
                except PlanewiseError as error:
                    wrong += path.name not in str(error) and path.name != "bundle.json"
            path.write_bytes(content)
        wrong += verify_bundle(bundle).run_id not in RUNS
    return count, 0, wrong


def truncated_planes(tries: int, chance: random.Random) -> Outcome:
    """A staged Parquet file is cut; its run is refused by name and the others are published."""
    wrong = 0
    for _ in range(tries):
        with place() as here:
            here.stage("ingest")
            victim = chance.choice(Store.open(here.store).staged())
            path = chance.choice(sorted((victim.path / "planes").iterdir()))
            content = path.read_bytes()
            path.write_bytes(content[: chance.randrange(len(content))])
            code = here.stage("publish")
            published = {bundle.run_id for bundle in Store.open(here.store).bundles()}
            wrong += code != 3 or len(published) != len(RUNS) - 1 or "Traceback" in here.said()
    return tries, 0, wrong


def clock_backwards(tries: int, chance: random.Random) -> Outcome:
    """Every clock reading is earlier than the one before."""
    expected, _ = undisturbed()
    lost = wrong = 0

    def turn_back() -> None:
        reading = itertools.count(time.time_ns(), -1_000_000_000)
        time.time_ns = lambda: next(reading)
        time.time = lambda: next(reading) / 1e9

    for _ in range(tries):
        with place() as here:
            wrong += here.stage("nightly", before=turn_back) != 0
            outcome = here.judge(expected)
            lost, wrong = lost + outcome[0], wrong + outcome[1]
    return tries, lost, wrong


def strange_names(tries: int, chance: random.Random) -> Outcome:
    """Sources and run ids with spaces, quotes, newlines, slashes, dots, and bytes that are no UTF-8."""
    names = ["a b", "it's", 'say "x"', "new\nline", "ünï", os.fsdecode(b"\xff\xfe"), "*[a]?", "-x", "a;b&c$(d)"]
    run_ids = [*names[:5], "../../escape", "/etc/passwd", "..", ".", "a" * 5000, "*[a]?", "%s", "\u202e"]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number, run_id in enumerate(run_ids):
            write_trace(root / "in" / f"{number}{names[number % len(names)]}.jsonl", run_id)
        before = {path for path in root.parent.iterdir() if path != root}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            wrong += command(["ingest", str(root / "in"), "--store", str(root / "store")]) != 0
            wrong += command(["publish", "--store", str(root / "store"), "--no-viewer"]) != 0
            wrong += command(["doctor", "--store", str(root / "store")]) != 0
        found = {bundle.run_id for bundle in Store.open(root / "store").bundles()}
        wrong += len(set(run_ids) - found)
        wrong += {path for path in root.parent.iterdir() if path != root} - before != set()
    return len(run_ids), len(set(run_ids) - found), wrong


def many_files(tries: int, chance: random.Random) -> Outcome:
    """A folder of 10,000 files of which four are traces."""
    expected, _ = undisturbed()
    with place() as here:
        for number in range(10_000):
            (here.folder / "in" / f"note-{number}.txt").write_text("no trace\n")
        here.sources = [here.folder / "in"]
        code = here.stage("nightly")
        lost, wrong = here.judge(expected)
        return 1, lost, wrong + (code == 70 or "Traceback" in here.said())


def foreign_stores(tries: int, chance: random.Random) -> Outcome:
    """Another content under a known run id; a store of a newer version; neither changes anything."""
    expected, _ = undisturbed()
    with place() as here:
        here.finish()
        other = write_trace(here.folder / "other.jsonl", "r1", entrypoint="demo::other")
        here.sources = [other]
        wrong = int(here.stage("ingest") != 3)
        before = _digest(here.store / "bundles")
        document = here.store / "store.json"
        kept = document.read_bytes()
        document.write_bytes(kept.replace(b"store/1", b"store/2"))
        for stage in ("ingest", "qualify", "publish", "requalify", "nightly"):
            wrong += here.stage(stage) == 0 or "Traceback" in here.said()
        document.write_bytes(kept)
        lost, more = here.judge(expected)
        return 6, lost, wrong + more + (_digest(here.store / "bundles") != before)


def _digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()


def read_only_store(tries: int, chance: random.Random) -> Outcome:
    """A user who may only read: questions are answered, a night refuses and changes nothing."""
    with place() as here:
        here.folder.chmod(0o755)
        here.finish()
        subprocess.run(["chmod", "-R", "a+rX,a-w", str(here.store)], check=True)
        here.folder.chmod(0o777)
        (here.folder / "said").unlink(missing_ok=True)
        before = _digest(here.store)
        wrong = 0
        for stage in ("ingest", "nightly"):
            code = here.stage(stage, user=NOBODY)
            wrong += code == 70 or (stage == "nightly" and code == 0) or "Traceback" in here.said()
            (here.folder / "said").unlink(missing_ok=True)
        here.words = lambda stage: ["sql", "FROM run_health", "--store", str(here.store)]  # type: ignore[method-assign]
        wrong += here.stage("sql", user=NOBODY) != 0
        return 3, 0, wrong + (_digest(here.store) != before)


ROOT = {"disk full", "permission denied midway", "read-only store"}
FAULTS: dict[str, Callable[[int, random.Random], Outcome]] = {
    **{
        f"SIGKILL in {stage}": lambda tries, chance, stage=stage: killed(stage, tries, chance)  # type: ignore[misc]
        for stage in ("ingest", "qualify", "publish", "requalify", "nightly")
    },
    "four writers, some killed": several_writers,
    "disk full": disk_full,
    "permission denied midway": permission_denied,
    "read-only store": read_only_store,
    "one bit of a bundle": flipped_bits,
    "truncated Parquet": truncated_planes,
    "clock going backwards": clock_backwards,
    "strange names and run ids": strange_names,
    "10,000 files": many_files,
    "taken run id, newer store": foreign_stores,
}
FEWER = {"disk full": 4, "permission denied midway": 4, "truncated Parquet": 4, "clock going backwards": 10}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="; ".join(FAULTS))
    parser.add_argument("--tries", type=int, default=40, help="tries of each kill (default 40: 200 kills)")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    bad = 0
    print(f"{'fault':28} {'tries':>6} {'lost':>5} {'wrong':>6} {'seconds':>8}")
    for name in given.faults or FAULTS:
        if name in ROOT and (os.geteuid() != 0 or shutil.which("mount") is None):
            print(f"{name:28} not tried: needs root")
            continue
        begun = time.monotonic()
        tries, lost, wrong = FAULTS[name](max(given.tries // FEWER.get(name, 1), 1), random.Random(given.seed))
        print(f"{name:28} {tries:6} {lost:5} {wrong:6} {time.monotonic() - begun:8.1f}", flush=True)
        bad += lost + wrong
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
