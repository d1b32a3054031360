"""Keep one connection to PostgreSQL, made anew after it failed."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import connect, plan_by_index, unreachable
from sweephand.telemetry import DatabaseMetrics

# What a statement can do wrong by itself: the connection is as good as before.
_STATEMENT_ERRORS = (psycopg.DataError, psycopg.IntegrityError)


class DatabaseLink:
    """One connection, opened when it is needed and dropped when it fails. For one thread at a time.

    `problem` says why the last use failed, for people; None means that it worked. Other threads may read it. `is_by_index`
    promises that every statement finds its rows by an index.
    """

    def __init__(
        self, database_url: str, *, application_name: str, prepare: bool, metrics: DatabaseMetrics, is_by_index: bool = False
    ) -> None:
        self._database_url = database_url
        self._application_name = application_name
        self._prepare = prepare
        self._is_by_index = is_by_index
        self._metrics = metrics
        self._connection: psycopg.Connection | None = None
        self.problem: str | None = "not connected to PostgreSQL yet"

    @contextmanager
    def use(self) -> Iterator[psycopg.Connection]:
        """Lend the connection, autocommit, to one block.

        Raises:
            DatabaseError: PostgreSQL could not be reached, went away, or refuses to write. What the block had sent may
                or may not have been committed. The next use opens a new connection.
        """
        try:
            yield self._open()
        except _STATEMENT_ERRORS as error:
            self._metrics.count_error(error.sqlstate)
            raise
        except psycopg.Error as error:
            self._metrics.count_error(error.sqlstate)
            self._metrics.read_only.set(1 if isinstance(error, psycopg.errors.ReadOnlySqlTransaction) else 0)
            self.close()
            self.problem = unreachable(error) if isinstance(error, psycopg.OperationalError) else _one_line(error)
            raise DatabaseError(self.problem) from error
        except DatabaseError as error:
            self._metrics.count_error(None)
            self.problem = str(error)
            raise
        if self.problem is not None:
            self.problem = None
            self._metrics.read_only.set(0)

    def close(self) -> None:
        """Drop the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = connect(self._database_url, application_name=self._application_name, prepare=self._prepare)
            if self._prepare and self._is_by_index:
                plan_by_index(self._connection)
        return self._connection


class Backoff:
    """Say how long to wait before the next try: doubling from 0.2 s to 5 s, from the start again after a success."""

    def __init__(self) -> None:
        self._failures = 0

    def failed(self) -> float:
        """Count a failure and return the wait in seconds."""
        self._failures = min(self._failures + 1, 6)
        return float(min(0.1 * 2**self._failures, 5.0))

    def succeeded(self) -> bool:
        """Start over; return whether there had been failures."""
        had_failed, self._failures = self._failures > 0, 0
        return had_failed


def _one_line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return f"PostgreSQL refuses: {lines[0] if lines else type(error).__name__}"
