"""Be the worker process: wait for the schema, work until a signal, stop softly."""

import signal
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType

import structlog

from sweephand.app import App
from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import connect
from sweephand.postgres.schema import check_schema
from sweephand.settings import Settings
from sweephand.telemetry import DatabaseMetrics, WorkerMetrics, create_registry
from sweephand.web.endpoints import serve_endpoints
from sweephand.worker.engine import Engine, quieten_dramatiq
from sweephand.worker.link import Backoff

_LOOK_SECONDS = 1.0
_SIGNAL_LOOK_SECONDS = 0.25


class WorkerProcess:
    """What the endpoints and the signals need to know of this process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting_for: str | None = "the worker is starting"
        # Its put is safe inside a signal handler, which an Event's set is not.
        self._signals: SimpleQueue[int] = SimpleQueue()
        self._is_signalled = False

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal: the first one stops the worker softly, a second one without further grace."""
        self._engine.is_hastened = self._is_signalled
        self._is_signalled = True
        self._signals.put(number)

    def wait_for_signal(self) -> None:
        """Wait until the process is told to end."""
        # The system may deliver a signal to a thread that blocks elsewhere; the handler runs when this one looks up.
        while not self._is_signalled:
            with suppress(Empty):
                self._signals.get(timeout=_SIGNAL_LOOK_SECONDS)

    def why_not_live(self) -> str | None:
        """Return which threads are dead; the database's absence is no reason to be restarted."""
        if self._waiting_for is not None or self._is_signalled:
            return None
        dead = self._engine.dead_threads()
        return f"these threads have ended: {', '.join(dead)}" if dead else None

    def why_not_ready(self) -> str | None:
        """Return what the worker waits for."""
        if self._is_signalled:
            return "the worker is stopping"
        return self._waiting_for or self._engine.database_problem()

    def register_when_ready(self, settings: Settings) -> bool:
        """Wait until the schema fits and the worker is registered; return False if a signal came first."""
        backoff = Backoff()
        while not self._is_signalled:
            try:
                with connect(settings.database_url, application_name="sweephand worker start", prepare=False) as conn:
                    problem = check_schema(conn)
                if problem is None:
                    self._engine.heart.register()
                    self._waiting_for = None
                    return True
            except DatabaseError as error:
                problem = str(error)
            if problem != self._waiting_for:
                structlog.get_logger().warning("waiting_for_database", reason=problem)
            self._waiting_for = problem
            with suppress(Empty):
                self._signals.get(timeout=min(backoff.failed(), _LOOK_SECONDS))
        return False


def run(app: App, settings: Settings) -> int:
    """Work on the application's jobs until SIGTERM or SIGINT; return the exit status.

    To be called in the main thread. Returns within the grace and a few seconds after the signal, also with the database
    gone; a second signal ends the grace. What a job blocks in C does not hold the process up.
    """
    registry = create_registry(settings)
    metrics = WorkerMetrics.create(registry)
    engine = Engine(app, settings, metrics=metrics, database_metrics=DatabaseMetrics.create(registry))
    process = WorkerProcess(engine)
    quieten_dramatiq()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, process.receive)
    endpoints = serve_endpoints(
        settings.metrics_port, registry=registry, is_live=process.why_not_live, is_ready=process.why_not_ready
    )
    log = structlog.get_logger()
    if process.register_when_ready(settings):
        # Before the first job can log its start.
        log.info(
            "worker_started",
            app=app.name,
            worker_id=engine.heart.worker_id,
            queues=",".join(engine.queues),
            threads=settings.worker_threads,
        )
        engine.start()
        process.wait_for_signal()
        log.info("worker_stopping", grace_seconds=settings.grace_seconds)
        since = time.monotonic()
        is_drained = engine.stop()
        seconds = time.monotonic() - since
        metrics.drain_seconds.labels("drained" if is_drained else "interrupted").observe(seconds)
        log.info("worker_stopped", drained=is_drained, seconds=round(seconds, 3))
    endpoints.close()
    return 0
