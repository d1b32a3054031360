"""Watch the database from a thread, so that /readyz answers at once, also while the database does not."""

from threading import Event, Thread
from time import monotonic

import psycopg
import structlog

from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import connect, unreachable
from sweephand.postgres.health import DatabaseHealth, read_health
from sweephand.postgres.schema import expected_version
from sweephand.telemetry import DatabaseMetrics

_INTERVAL_SECONDS = 2.0
# Longer than a busy database takes, shorter than a prober's three failures.
_PATIENCE_SECONDS = 5.0


class DatabaseWatch:
    """A thread that asks the database every two seconds, over one connection that it keeps.

    It exports what it finds, logs when the answer changes, and never ends for an error.
    """

    def __init__(self, database_url: str, *, application_name: str, metrics: DatabaseMetrics, prepare: bool = True) -> None:
        self._database_url = database_url
        self._application_name = application_name
        self._prepare = prepare
        self._metrics = metrics
        self._stop = Event()
        self._connection: psycopg.Connection | None = None
        self._problem: str | None = "the database has not been asked yet"
        self._asked_at: float | None = None
        metrics.schema_version_expected.set(int(expected_version()))
        self._thread = Thread(target=self._watch, name="database-watch", daemon=True)
        self._thread.start()

    def problem(self) -> str | None:
        """Return why the database cannot be used, or None. Never waits; any thread."""
        asked_at = self._asked_at
        if asked_at is not None and monotonic() - asked_at > _PATIENCE_SECONDS:
            return f"PostgreSQL has not answered for {monotonic() - asked_at:.0f} s"
        return self._problem

    def close(self) -> None:
        """Stop watching. Does not wait for a database that does not answer."""
        self._stop.set()
        self._thread.join(timeout=1)

    def _watch(self) -> None:
        while not self._stop.is_set():
            self._asked_at = monotonic()
            problem = self._ask()
            self._asked_at = None
            if problem != self._problem:
                self._tell(problem)
            self._problem = problem
            self._stop.wait(_INTERVAL_SECONDS)
        self._disconnect()

    def _ask(self) -> str | None:
        try:
            if self._connection is None:
                self._connection = connect(self._database_url, application_name=self._application_name, prepare=self._prepare)
            health = read_health(self._connection)
        except DatabaseError as error:
            self._metrics.count_error(None)
            return str(error)
        except psycopg.Error as error:
            self._metrics.count_error(error.sqlstate)
            self._disconnect()
            return unreachable(error)
        except Exception as error:  # noqa: BLE001 - the loop's edge: a watch that died would be stuck at its last answer
            structlog.get_logger().exception("database_watch_failed")
            self._disconnect()
            return f"the database could not be asked: {type(error).__name__}"
        self._export(health)
        return health.schema_problem

    def _export(self, health: DatabaseHealth) -> None:
        self._metrics.read_only.set(health.is_read_only)
        self._metrics.schema_version_applied.set(int(health.schema_version or 0))

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _tell(self, problem: str | None) -> None:
        log = structlog.get_logger()
        if problem is None:
            log.info("database_found_ready")
        else:
            log.warning("database_found_unusable", reason=problem)
