"""The recording session: opens a capture folder, takes records from any thread, ends with a terminal record."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from .errors import ContractError, RecordingError, UsageError
from .faults import warn_once_of
from .folder import add_attachment, claim_folder, write_terminal
from .memory_records import MemoryCalls
from .options import RecorderOptions
from .profile_run import ProfileRun
from .records import RecordCalls
from .shards import ShardWriter
from .span_calls import SpanCalls, listed
from .spans import SpanId
from .values import filled_text, shown, text
from .vocabulary import Outcome, SpanKind


class TraceSession(SpanCalls, RecordCalls, MemoryCalls):
    """One capture in the making; open it with :meth:`open`, and best use it as a context manager.

    Leaving the ``with`` block finishes the capture; an exception in the block ends it as failed, with the exception's
    text, and passes on. Any thread may record against any span of the session; spans nest per thread and per asyncio
    task, and the first span of either lies under the root unless ``parent`` says otherwise (more in ``spans``).

    A fault of the disk is sticky: it never reaches the recording calls (unless the options are strict), is warned of
    once, and makes :meth:`flush` and :meth:`finish` raise :class:`~planewise.recorder.errors.RecordingError`: a damaged
    capture never ends as complete. A program that ends without ending its session leaves every row it recorded and no
    terminal record, so the capture counts as interrupted. A forked child records nothing into its parent's capture and
    is warned of it once. Several sessions may be open at a time; none can be copied or pickled.
    """

    def __init__(self, path: Path, run: ProfileRun, run_id: str, options: RecorderOptions, header_sha256: str) -> None:
        super().__init__(ShardWriter(path, run_id, options))
        self.path = path
        """The capture folder."""
        self.run_id = run_id
        """Identity of this recording."""
        self._options = options
        self._header_sha256 = header_sha256
        self._start_clock()
        with self._writer.lock:
            self.root_id = self._started(None, text(run.entrypoint, "entrypoint"), 0, SpanKind.FUNCTION)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        run: ProfileRun,
        *,
        run_id: str | None = None,
        options: RecorderOptions | None = None,
    ) -> TraceSession:
        """Check the run and its contract, create the folder with its header, and start the clock.

        ``run_id`` must be unique per recording; by default it is ``run-<pid>-<unix nanoseconds>``, with
        the rank of a run that torchrun started. Raises
        :class:`ContractError` before anything is written, :class:`Conflict` when ``path`` exists and is not an empty
        folder, :class:`RecordingError` when the header cannot be written.
        """
        identity = _new_run_id(run) if run_id is None else filled_text(run_id, "run_id")
        run.validate()
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        folder = Path(path)
        header_sha256 = claim_folder(folder, run.to_json(run_id=identity, timestamp=now.replace("+00:00", "Z")))
        return cls(folder, run, identity, options or RecorderOptions(), header_sha256)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise UsageError(
            "an open recording cannot be copied or pickled: it holds a lock, a thread and the folder it writes",
            source=self.path,
            code="session_not_copyable",
            remedy="open a session of its own in each process, and hand over its folder",
        )

    def _span(self, span_id: SpanId) -> str:
        if getattr(span_id, "owner", None) is not self._writer:
            raise ContractError(
                f"{shown(span_id)} is no span of this session",
                position="span_id",
                code="foreign_span",
                remedy="pass the id of a guard, or the root_id, of this session",
            )
        return span_id

    def _put(self, family: str, values: tuple[Any, ...], extra_bytes: int = 0) -> None:
        writer = self._writer
        with writer.lock:
            if not self._accepting:
                raise self._ended()
            writer.put(family, (next(self._seq),) + values, extra_bytes)  # noqa: RUF005  See _row.
        if writer.fault is not None:
            self._tell_of_fault()

    def _require_open(self) -> None:
        if not self._accepting:
            raise self._ended()

    def _ended(self) -> ContractError:
        return ContractError("the session has ended", source=self.path, code="session_ended")

    def _tell_of_fault(self) -> None:
        if self._writer.fault is None:
            return
        if self._options.strict:
            self._writer.check()
        if not self._writer.told:
            self._writer.told = True
            warn_once_of(self._writer.fault, self.path)

    def record_attachment(self, source: str | os.PathLike[str], *, title: str, name: str | None = None) -> None:
        """Copy a raw artefact into the capture, under ``attachments/``, and record its size and digest.

        Raises :class:`RecordingError` when it cannot be read or copied; that fault is not sticky. After a sticky fault,
        and in a forked child, nothing is copied and the row counts as lost.
        """
        self._require_open()
        caption = filled_text(title, "title")
        if self._writer.fault is None:
            row = add_attachment(self.path, Path(source), title=caption, name=name)
        else:
            row = ("", caption, 0, "")
        self._put("attachments", row)

    @property
    def host_origin_ns(self) -> int:
        """The ``time.perf_counter_ns()`` reading at which the session's host clock is 0."""
        return self._origin

    def note_fault(self, fault: BaseException) -> None:
        """Make a fault of an automatic capture the session's own: sticky, warned of once, raised in strict mode."""
        with self._writer.lock:
            self._writer.fault = self._writer.fault or fault
        self._tell_of_fault()

    @property
    def is_open(self) -> bool:
        """True until the session has ended."""
        return self._accepting

    @property
    def lost_rows(self) -> int:
        """Rows recorded and not written because of a fault."""
        return self._writer.lost_rows

    def flush(self) -> None:
        """Put every recorded row on disk; raises :class:`RecordingError` after a fault."""
        self._require_open()
        self._writer.drain()

    def finish(self) -> Path:
        """End the capture as complete and return its folder.

        Raises :class:`ContractError` while a span other than the root is open, :class:`RecordingError` after a fault;
        the session stays open then, and :meth:`finish_failed` may still end it.
        """
        self._writer.check()
        with self._writer.lock:
            self._require_open()
            if self._open_spans:
                raise ContractError(
                    f"spans still open: {listed(self._open_spans.values())}",
                    source=self.path,
                    code="open_spans",
                    remedy="close their guards first",
                )
            now = self.elapsed_ns()
            self._row("spans_end", (self.root_id, now))
            self._accepting = False
        try:
            self._writer.drain()
            self._end(Outcome.COMPLETE, now, None)
        except RecordingError as fault:
            self._writer.fault = self._writer.fault or fault  # The root has ended: never end it twice.
            self._accepting = True
            raise
        return self.path

    def finish_failed(self, reason: str) -> Path:
        """End the capture as failed and return its folder; open spans stay open.

        A fault of the disk is passed over: the terminal record counts the lost rows. Raises :class:`ContractError` for
        a blank reason, :class:`RecordingError` when no terminal record can be written.
        """
        why = filled_text(reason, "reason")
        if os.getpid() != self._writer.pid:
            self._writer.check()
        with self._writer.lock:
            self._require_open()
            now = self.elapsed_ns()
            self._accepting = False
        try:
            self._drain_what_can()
            self._end(Outcome.FAILED, now, why)
        except RecordingError:
            self._accepting = True
            raise
        return self.path

    def _drain_what_can(self) -> None:
        if self._writer.fault is None:
            try:
                self._writer.drain()
            except RecordingError:
                return  # The terminal record says how many rows are lost.

    def _end(self, outcome: Outcome, now: int, reason: str | None) -> None:
        rows = {name: written for name, written in self._writer.rows_written.items() if written}
        write_terminal(
            self.path,
            outcome,
            now,
            reason=reason,
            rows=rows,
            lost_rows=self._writer.lost_rows,
            header_sha256=self._header_sha256,
        )
        self._writer.close()

    def __enter__(self) -> TraceSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_open or os.getpid() != self._writer.pid:
            return  # Ended by hand; or a fork leaves the block, whose parent owns the capture.
        try:
            if value is None:
                self._finish_or_fail()
            else:
                self._fail_with(value)
        finally:
            self._writer.close()

    def _finish_or_fail(self) -> None:
        try:
            self.finish()
        except ContractError as refusal:
            self.finish_failed(str(refusal))
            raise

    def _fail_with(self, value: BaseException) -> None:
        try:
            self.finish_failed(_reason(value))
        except RecordingError as fault:
            value.add_note(f"planewise: the capture could not be ended as failed: {fault}")


def _new_run_id(run: ProfileRun) -> str:
    rank = f"rank{run.tags['rank']}-" if "rank" in run.tags else ""
    return f"run-{rank}{os.getpid()}-{time.time_ns()}"


def _reason(value: BaseException) -> str:
    """The text of an exception, which may have none and may hold what UTF-8 has no form for."""
    try:
        said = str(value)
    except Exception:  # noqa: BLE001  The body's own exception passes on, whatever it does when it is asked.
        said = "it has no text"
    return f"{type(value).__name__}: {said}".encode(errors="replace").decode()
