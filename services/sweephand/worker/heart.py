"""Tell the database that this worker lives, and hear from it what has become of its jobs."""

import time
from collections.abc import Callable, Sequence
from threading import Event, Thread
from uuid import UUID, uuid4

import psycopg
import structlog

from sweephand.model.errors import DatabaseError
from sweephand.postgres.workers import cancellations, heartbeat, mark_stopping, register_worker, remove_worker
from sweephand.telemetry import WorkerMetrics
from sweephand.worker.attempts import Interruption
from sweephand.worker.interrupts import Interrupts
from sweephand.worker.job_log import JobLog
from sweephand.worker.link import DatabaseLink

_LOOK_SECONDS = 1.0
_FAREWELL_SECONDS = 2.0


class Heart:
    """Register the worker, beat, and pass cancellations on, over a connection and from a thread of its own.

    It is the authority on whether this worker may claim: one that could not tell for long that it lives would have its
    jobs taken away as fast as it claims them.
    """

    def __init__(
        self,
        *,
        link: DatabaseLink,
        name: str,
        app_name: str,
        queues: Sequence[str],
        slots: int,
        heartbeat_seconds: float,
        rescue_after_seconds: float,
        interrupts: Interrupts,
        log: JobLog,
        metrics: WorkerMetrics,
        reason_not_to_claim: Callable[[], str | None],
    ) -> None:
        self._link = link
        self._name = name
        self._boot_id: UUID = uuid4()
        self._app_name = app_name
        self._queues = tuple(queues)
        self._slots = slots
        self._heartbeat_seconds = heartbeat_seconds
        self._silence_seconds = rescue_after_seconds / 2
        self._interrupts = interrupts
        self._log = log
        self._metrics = metrics
        self._other_reason = reason_not_to_claim
        self._worker_id = 0
        self._limited_queues: frozenset[str] = frozenset()
        self._last_beat = float("-inf")
        self._is_stopping = False
        self._has_said_stopping = False
        self._is_stopped = False
        self._wake = Event()
        self._thread = Thread(target=self._run, name="heart", daemon=True)

    @property
    def worker_id(self) -> int:
        """The id of this worker's row, which its claims carry."""
        return self._worker_id

    @property
    def limited_queues(self) -> frozenset[str]:
        """The queues that had a concurrency limit at the last heartbeat."""
        return self._limited_queues

    @property
    def is_alive(self) -> bool:
        """Whether the thread lives; it does while the database is gone, too."""
        return self._thread.is_alive()

    def reason_not_to_claim(self) -> str | None:
        """Return why nothing should be claimed now; None if nothing speaks against it."""
        if time.monotonic() - self._last_beat > self._silence_seconds:
            return "no heartbeat could be stored lately"
        return self._other_reason()

    def register(self) -> None:
        """Add this worker to the table and beat once.

        Raises:
            DatabaseError: PostgreSQL cannot be reached.
        """
        with self._link.use() as conn:
            self._register(conn)
            self._beat(conn)

    def start(self) -> None:
        """Start beating."""
        self._thread.start()

    def say_stopping(self) -> None:
        """Say on the table that this worker claims no more, as soon as the database can be reached."""
        self._is_stopping = True
        self._wake.set()

    def stop(self) -> None:
        """Stop beating, and take this worker off the table if the database answers within a moment."""
        self._is_stopped = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_FAREWELL_SECONDS)

    def _run(self) -> None:
        while True:
            self._wake.wait(_LOOK_SECONDS)
            self._wake.clear()
            self._log.sum_up()
            # Asked once: told to stop in the middle of a beat, it must come around again to say goodbye.
            is_stopped = self._is_stopped
            try:
                if is_stopped:
                    self._say_goodbye()
                else:
                    self._look()
            except DatabaseError as error:
                structlog.get_logger().warning("heartbeat_failed", reason=str(error))
            except Exception:  # noqa: BLE001 - the loop's edge: a worker whose heart stops would lose its jobs
                structlog.get_logger().exception("heartbeat_failed")
            if is_stopped:
                return

    def _look(self) -> None:
        now = time.monotonic()
        is_due = now - self._last_beat >= self._heartbeat_seconds
        runs_something = any(attempt.started < now - _LOOK_SECONDS for attempt in self._interrupts.running())
        is_unsaid = self._is_stopping and not self._has_said_stopping
        if not (is_due or runs_something or is_unsaid):
            return
        with self._link.use() as conn:
            if is_due:
                self._beat(conn)
            if is_unsaid:
                mark_stopping(conn, worker_id=self._worker_id)
                self._has_said_stopping = True
            if runs_something:
                self._cancel(conn)

    def _cancel(self, conn: psycopg.Connection) -> None:
        running = {(attempt.claimed.job_id, attempt.claimed.attempt): attempt for attempt in self._interrupts.running()}
        for request in cancellations(conn, worker_id=self._worker_id):
            attempt = running.get((request.job_id, request.attempt))
            if attempt is not None:
                self._interrupts.interrupt(attempt, why=Interruption.CANCELLED, reason=request.reason)

    def _say_goodbye(self) -> None:
        with self._link.use() as conn:
            remove_worker(conn, worker_id=self._worker_id)
        self._link.close()

    def _register(self, conn: psycopg.Connection) -> None:
        self._worker_id = register_worker(
            conn,
            name=self._name,
            boot_id=self._boot_id,
            app=self._app_name,
            queues=self._queues,
            slots=self._slots,
        )

    def _beat(self, conn: psycopg.Connection) -> None:
        beat = heartbeat(conn, worker_id=self._worker_id, queues=self._queues)
        if not beat.is_known:
            structlog.get_logger().warning("worker_was_given_up", worker_id=self._worker_id)
            self._register(conn)
        self._limited_queues = beat.limited_queues
        self._last_beat = time.monotonic()
        self._metrics.heartbeat_timestamp_seconds.set_to_current_time()
