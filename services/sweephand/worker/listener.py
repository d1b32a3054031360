"""Wake consumers when a job becomes available, over a connection that heals itself.

Nothing depends on it: without notifications a worker finds jobs by polling.
"""

from collections.abc import Mapping
from threading import Event, Thread

import psycopg
import structlog

from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import connect, unreachable
from sweephand.postgres.notifications import check_alive, listen, notified_queues
from sweephand.telemetry import WorkerMetrics
from sweephand.worker.link import Backoff
from sweephand.worker.wake import Wake

_CHECK_SECONDS = 20.0


class Listener:
    """Listen in a thread of its own, and set a queue's event when the queue is notified."""

    def __init__(self, database_url: str, *, application_name: str, wakes: Mapping[str, Wake], metrics: WorkerMetrics) -> None:
        self._database_url = database_url
        self._application_name = application_name
        self._wakes = wakes
        self._metrics = metrics
        self._stopped = Event()
        self._backoff = Backoff()
        self._thread = Thread(target=self._run, name="listener", daemon=True)

    def start(self) -> None:
        """Start listening."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, by the next check at the latest."""
        self._stopped.set()

    @property
    def is_alive(self) -> bool:
        """Whether the thread lives; it does while the connection is being made anew, too."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._listen()
            except (psycopg.Error, DatabaseError) as error:
                self._metrics.listener_connected.set(0)
                wait_seconds = self._backoff.failed()
                reason = unreachable(error) if isinstance(error, psycopg.Error) else str(error)
                structlog.get_logger().warning("listener_disconnected", retry_in_seconds=wait_seconds, reason=reason)
                self._stopped.wait(wait_seconds)
                self._metrics.notify_reconnects_total.inc()

    def _listen(self) -> None:
        conn = connect(self._database_url, application_name=self._application_name, prepare=False)
        with conn:
            listen(conn, list(self._wakes))
            self._metrics.listener_connected.set(1)
            if self._backoff.succeeded():
                structlog.get_logger().info("listener_reconnected")
            # What was notified while nobody listened is found by looking once.
            for wake in self._wakes.values():
                wake.set()
            while not self._stopped.is_set():
                for queue in notified_queues(conn, timeout_seconds=_CHECK_SECONDS):
                    if queue in self._wakes:
                        self._wakes[queue].set()
                check_alive(conn)
