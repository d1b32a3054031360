"""Write how attempts ended, many with one statement, from a thread of its own."""

import time
from collections.abc import Callable, Sequence
from threading import Condition, Thread

import psycopg
import structlog

from sweephand.model.errors import DatabaseError
from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.claim import release
from sweephand.postgres.finish import FinishedAttempt, finish
from sweephand.worker.attempts import Attempt
from sweephand.worker.completions import settle_completions
from sweephand.worker.counts import WorkerCounts
from sweephand.worker.link import Backoff, DatabaseLink
from sweephand.worker.room import Room

MOST_UNWRITTEN = 5_000
_BATCH = 1_000


class Finisher:
    """Gather what has ended while the last statement is under way, and write it with the next. Thread-safe.

    While the database is gone the outcomes are kept and tried again. They stay few: nothing is claimed while
    MOST_UNWRITTEN of them wait. `on_written` is called with each batch that was written.
    """

    def __init__(
        self,
        *,
        link: DatabaseLink,
        room: Room,
        worker_name: str,
        counts: WorkerCounts,
        on_written: Callable[[Sequence[Attempt]], None],
    ) -> None:
        self._link = link
        self._room = room
        self._worker_name = worker_name
        self._counts = counts
        self._on_written = on_written
        self._in_hand: list[Attempt] = []
        self._written = Condition()
        self._is_stopped = False
        self._backoff = Backoff()
        self._thread = Thread(target=self._run, name="finisher", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether outcomes are being written."""
        return self._thread.is_alive()

    @property
    def unwritten(self) -> int:
        """How many outcomes are not in the database yet."""
        return len(self._in_hand) + self._room.waiting

    def add(self, attempt: Attempt) -> None:
        """Take over an attempt that has ended; without an outcome it was not started, and goes back."""
        self._room.end(attempt)

    def release(self, attempts: Sequence[Attempt]) -> None:
        """Take over attempts that were claimed and not started, to give them back."""
        if attempts:
            self._room.end_unstarted(attempts)

    def abandon(self, attempt: Attempt) -> None:
        """Hand back an attempt whose thread does not end, without counting it; what the thread says later is ignored."""
        attempt.finished = FinishedAttempt(
            *attempt.held,
            AttemptOutcome.INTERRUPTED,
            attempt.started,
            time.monotonic(),
            error="interrupted by the worker's shutdown",
        )
        self._room.end(attempt)

    def drain(self, timeout_seconds: float) -> bool:
        """Wait until everything is written; return whether that came true in time."""
        with self._written:
            return self._written.wait_for(lambda: self.unwritten == 0, timeout_seconds)

    def stop(self) -> None:
        """End the thread; what is not written stays unwritten."""
        self._is_stopped = True
        self._room.wake()
        with self._written:
            self._written.notify_all()

    def _run(self) -> None:
        while not self._is_stopped:
            if not self._in_hand:
                self._in_hand = self._room.take(_BATCH)
            if self._in_hand and not self._write(self._in_hand):
                with self._written:
                    self._written.wait_for(lambda: self._is_stopped, self._backoff.failed())
                continue
            with self._written:
                self._in_hand = []
                self._written.notify_all()
        self._link.close()

    def _write(self, attempts: list[Attempt]) -> bool:
        try:
            with self._link.use() as conn:
                unsettled = settle_completions(conn, attempts)
                stale = self._finish(conn, [attempt.finished for attempt in unsettled if attempt.finished is not None])
                release(conn, [attempt.held for attempt in unsettled if attempt.finished is None])
        except DatabaseError as error:
            structlog.get_logger().warning("finish_failed", attempts=self.unwritten, reason=str(error))
            return False
        except Exception:  # noqa: BLE001 - the loop's edge: the outcomes are kept, whatever went wrong
            structlog.get_logger().exception("finish_failed", attempts=self.unwritten)
            return False
        if self._backoff.succeeded():
            structlog.get_logger().info("finishes_resumed", attempts=self.unwritten)
        self._on_written(attempts)
        self._counts.count([attempt for attempt in attempts if attempt.finished is not None], stale=stale)
        return True

    def _finish(self, conn: psycopg.Connection, finished: list[FinishedAttempt]) -> list[int]:
        """Write a batch; if PostgreSQL refuses one of its values, find that one by halving, so that it holds up nobody."""
        try:
            return finish(conn, finished, worker_name=self._worker_name, monotonic_now=time.monotonic())
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            if len(finished) > 1:
                middle = len(finished) // 2
                return self._finish(conn, finished[:middle]) + self._finish(conn, finished[middle:])
            structlog.get_logger().error("outcome_refused", job_id=finished[0].job_id, error=str(error))
            plain = finished[0]._replace(
                error="the error's text could not be stored" if finished[0].error else None, traceback=None
            )
            if plain == finished[0]:
                plain = plain._replace(
                    outcome=AttemptOutcome.DISCARDED, delay_seconds=None, error="the outcome could not be stored"
                )
            return finish(conn, [plain], worker_name=self._worker_name, monotonic_now=time.monotonic())
