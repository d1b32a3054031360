"""Give an operator's command or page its connection, and say in one line what PostgreSQL has against it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg

from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import connect, unreachable
from sweephand.postgres.schema import require_schema

READ_TIMEOUT = timedelta(seconds=30)
WRITE_TIMEOUT = timedelta(seconds=30)
_LOCK_TIMEOUT = timedelta(seconds=5)

# Local to the transaction: behind PgBouncer the session belongs to somebody else after it.
_READ = "SELECT set_config('transaction_read_only', 'on', true), set_config('statement_timeout', %s, true)"
_WRITE = "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)"
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"


@contextmanager
def operator_session(database_url: str) -> Iterator[psycopg.Connection]:
    """Open an autocommit connection to a migrated database, and close it at the end.

    Raises:
        DatabaseError: PostgreSQL cannot be reached, refuses, or did not answer in time; now or inside the block.
        NotMigratedError: the schema is missing or behind.
    """
    try:
        with connect(database_url, application_name="sweephand cli", prepare=False) as connection:
            require_schema(connection)
            yield connection
    except psycopg.Error as error:
        words = _words(error)
        if words is None:
            raise
        raise DatabaseError(words) from error


@contextmanager
def reading(connection: psycopg.Connection, *, timeout: timedelta = READ_TIMEOUT) -> Iterator[None]:
    """Open a transaction that cannot write and sees one moment of the database; a statement may take `timeout`."""
    with connection.transaction():
        connection.execute(_SNAPSHOT)
        connection.execute(_READ, (_milliseconds(timeout),))
        yield


@contextmanager
def writing(connection: psycopg.Connection) -> Iterator[None]:
    """Open a transaction whose statements give up soon rather than queue up behind a lock."""
    with connection.transaction():
        connection.execute(_WRITE, (_milliseconds(_LOCK_TIMEOUT), _milliseconds(WRITE_TIMEOUT)))
        yield


def _words(error: psycopg.Error) -> str | None:
    """Return one line for people; None for what is a defect of ours."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    match error:
        case psycopg.errors.QueryCanceled():
            return f"PostgreSQL gave up ({first}); ask for less, with a filter or --since, or try again"
        case psycopg.errors.LockNotAvailable():
            return f"somebody else has locked the rows or the table ({first}); try again"
        case psycopg.errors.ReadOnlySqlTransaction():
            return "PostgreSQL takes no writes now (it is read-only); try again when it does"
        case psycopg.errors.InsufficientPrivilege():
            return f"PostgreSQL refuses: {first}; use a DATABASE_URL of a user that may"
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return unreachable(error)
        case _:
            return None


def _milliseconds(duration: timedelta) -> str:
    return str(max(1, int(duration.total_seconds() * 1000)))
