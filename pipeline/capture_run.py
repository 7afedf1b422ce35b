"""``CaptureRun``: one planned capture that becomes one published bundle at a given path (protocol 9.4).

The capture is recorded in a hidden folder beside the destination and stays there when anything goes wrong.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..recorder.errors import (
    Conflict,
    ContractError,
    InputRefused,
    PlanewiseError,
    RecordingError,
    UsageError,
    VerificationFailed,
)
from ..recorder.options import RecorderOptions
from ..recorder.profile_run import ProfileRun
from ..recorder.session import TraceSession
from .bundle import Receipt, is_safe_path, verify_bundle
from .publish import Publication, publish_folder
from .run_folder import is_regular

if TYPE_CHECKING:
    from .staging import KeptFile

RECONCILED = ("entrypoint", "correlation_id", "phase", "capture_step", "device")
"""The fields by which a published bundle is the planned capture; a retry may differ in everything else."""


@dataclass(frozen=True)
class CaptureBegin:
    """How a planned capture begins: exactly one of the two is set.

    ``already_published`` is the fresh receipt of an earlier publication, and then nothing is recorded; ``active`` is
    the capture to record into.
    """

    already_published: Publication | None = None
    active: CaptureRun | None = None


class CaptureRun:
    """A capture in the making; begin it with :meth:`begin`.

    As a context manager it publishes at the end of the block, as failed with the exception's text when one leaves it.
    """

    def __init__(self, destination: Path, run: ProfileRun, session: TraceSession) -> None:
        """Use :meth:`begin`."""
        self.destination = destination
        """Where the bundle will be."""
        self.publication: Publication | None = None
        """The receipt; None until it is published."""
        self._run = run
        self._session = session
        self._nsight_dir: Path | None = None

    @classmethod
    def begin(
        cls, destination: str | os.PathLike[str], run: ProfileRun, *, options: RecorderOptions | None = None
    ) -> CaptureBegin:
        """Begin a planned capture, or find that it is published already.

        Raises :class:`UsageError` for a destination without a name or inside a bundle, :class:`Conflict` when
        another capture is published there, :class:`VerificationFailed` when what is there is no sound bundle, and
        what opening a session raises.
        """
        target = Path(destination)
        _refuse_destination(target)
        if (receipt := reconcile(target, run)) is not None:
            return CaptureBegin(already_published=receipt)
        target.parent.mkdir(parents=True, exist_ok=True)
        session = TraceSession.open(_hidden(target, "capture"), run, options=options)
        return CaptureBegin(active=cls(target, run, session))

    @property
    def session(self) -> TraceSession:
        """The session to record with."""
        return self._session

    @property
    def staging_capture(self) -> Path:
        """The hidden folder the capture is recorded in."""
        return self._session.path

    def with_nsight_dir(self, directory: str | os.PathLike[str]) -> CaptureRun:
        """Keep the files of a flat directory as ``nsight/`` in the bundle; it is read when the capture is published."""
        self._nsight_dir = Path(directory)
        return self

    def publish(self) -> Publication:
        """Finish the capture as complete and publish it.

        Raises :class:`PlanewiseError`; the capture then stays in its hidden folder, which the error names.
        """
        with self._retained():
            if self._session.is_open:  # Else it was ended by hand, or an earlier call failed after ending it.
                self._session.finish()
            return self._publish()

    def publish_failed(self, reason: str) -> Publication:
        """End the capture as failed with a reason that is not blank, and publish it; raises as :meth:`publish`."""
        with self._retained():
            self._session.finish_failed(reason)
            return self._publish()

    def __enter__(self) -> CaptureRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.publication is not None:
            return
        if value is None:
            self._publish_or_fail()
            return
        try:
            if self._session.is_open:
                self.publish_failed(f"{type(value).__name__}: {value}".encode(errors="replace").decode())
            else:
                self.publish()  # The session has ended as failed itself.
        except PlanewiseError as error:
            if error is not value:
                value.add_note(f"planewise: the failed capture is not published: {error}")

    def _publish_or_fail(self) -> None:
        try:
            self.publish()
        except ContractError as refusal:
            if self._session.is_open:  # Spans are open: the capture ends as failed, and the caller hears of it.
                self.publish_failed(refusal.message)
            raise

    def _publish(self) -> Publication:
        self.publication = reconcile(self.destination, self._run) or self._publish_or_reconcile()
        shutil.rmtree(self.staging_capture, ignore_errors=True)
        return self.publication

    def _publish_or_reconcile(self) -> Publication:
        try:
            return self._publish_bundle()
        except Conflict:
            receipt = reconcile(self.destination, self._run)  # A concurrent retry was faster.
            if receipt is None:
                raise
            return receipt

    def _publish_bundle(self) -> Publication:
        from ..ingest.base import READERS
        from .load import rebuild_packet
        from .qualify import write_evidence
        from .staging import stage_source

        staged = _hidden(self.destination, "tmp")
        try:
            run = stage_source(READERS["capture"], self.staging_capture, staged, self._nsight_files())
            if self._nsight_dir is not None:
                (staged / "nsight").mkdir(exist_ok=True)
            write_evidence(staged, rebuild_packet(staged))
            publish_folder(staged, self.destination, run.run_id)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        return _publication("published", self.destination, verify_bundle(self.destination))

    def _nsight_files(self) -> list[KeptFile]:
        from .staging import KeptFile

        if self._nsight_dir is None:
            return []
        files = []
        with os.scandir(self._nsight_dir) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode) or not is_safe_path(entry.name):
                    raise InputRefused(
                        f"{entry.name!r} is no plain regular file",
                        source=self._nsight_dir,
                        code="nsight_entry",
                        remedy="give a flat directory of regular files, without links",
                    )
                files.append(KeptFile(Path(entry.path), f"nsight/{entry.name}", "Nsight artefact."))
        return files

    @contextmanager
    def _retained(self) -> Iterator[None]:
        """Make every failure name the capture that stays behind."""
        kept = f"the capture stays at {self.staging_capture}"
        try:
            yield
        except PlanewiseError as error:
            error.remedy = f"{error.remedy}; {kept}" if error.remedy else kept
            raise
        except (OSError, pa.ArrowException) as error:
            raise RecordingError(f"cannot publish: {error}", source=self.destination, remedy=kept) from error
        except BaseException as error:
            error.add_note(f"planewise: {kept}")
            raise


def reconcile(destination: Path, run: ProfileRun) -> Publication | None:
    """What is at the destination of a planned capture: None for nothing, a fresh receipt for that very capture.

    Raises :class:`VerificationFailed` when it is no sound bundle (it is never reused or overwritten), and
    :class:`Conflict`, with the names of the fields that differ, when it is another capture.
    """
    if not os.path.lexists(destination):
        return None
    receipt = verify_bundle(destination)
    published = _published_run(destination)
    if published["run_id"] != receipt.run_id:
        raise VerificationFailed(
            f"the manifest names run {receipt.run_id!r}, the planes hold {published['run_id']!r}", source=destination
        )
    planned = run.to_json(run_id="", timestamp="")
    different = [name for name in RECONCILED if planned[name] != published[name]]
    if different:
        raise Conflict(
            f"another capture is published here; these fields differ: {', '.join(different)}",
            source=destination,
            remedy="give this capture its own destination",
        )
    return _publication("already_published", destination, receipt)


def _publication(status: str, destination: Path, receipt: Receipt) -> Publication:
    return Publication(receipt.run_id, status, str(destination), receipt.manifest_sha256, receipt)


def _published_run(bundle: Path) -> dict[str, Any]:
    path = bundle / "planes" / "runs.parquet"
    try:
        rows = pq.read_table(path, columns=["run_id", *RECONCILED], partitioning=None).to_pylist()
    except (OSError, pa.ArrowException, KeyError) as error:
        raise VerificationFailed(f"the runs plane cannot be read: {error}", source=path) from error
    if len(rows) != 1:
        raise VerificationFailed(f"found {len(rows)} runs, expected one", source=path)
    return dict(rows[0])


def _refuse_destination(destination: Path) -> None:
    """The folders above are those of the path as given: a relative one is not followed above where it starts (9.4)."""
    if destination.name in ("", ".."):
        raise UsageError("the destination has no name", source=destination, code="destination")
    for folder in destination.parents:
        if is_regular(folder / "bundle.json"):
            raise UsageError(
                f"the destination lies inside the published bundle {folder}",
                source=destination,
                code="inside_bundle",
                remedy="choose a destination outside it",
            )


def _hidden(destination: Path, word: str) -> Path:
    return destination.with_name(f".{destination.name[:100]}.{word}-{os.getpid()}-{time.time_ns()}")
