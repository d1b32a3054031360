"""Keep the lease as a row of PostgreSQL: the `LeaseStore` for dispatchers outside of Kubernetes."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime

import psycopg
from psycopg.rows import TupleRow

from sweephand.model.errors import DatabaseError
from sweephand.model.lease import (
    LeaseConflictError,
    LeaseError,
    LeaseFailure,
    LeaseForbiddenError,
    LeaseMissingError,
    LeaseRecord,
    LeaseUnavailableError,
    StoredLease,
)
from sweephand.postgres.connect import connect_async

_COLUMNS = "holder, lease_seconds, acquired_at, renewed_at, transitions, version"
_GET = f"SELECT {_COLUMNS} FROM sweephand.lease WHERE name = %(name)s"  # noqa: S608 our own words
# The first version is the moment in microseconds: a row that was deleted and made again never repeats a version.
_CREATE = f"""
    INSERT INTO sweephand.lease (name, holder, lease_seconds, acquired_at, renewed_at, transitions, version)
    VALUES (%(name)s, %(holder)s, %(lease_seconds)s, %(acquired_at)s, %(renewed_at)s, %(transitions)s,
            (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    ON CONFLICT (name) DO NOTHING
    RETURNING {_COLUMNS}"""  # noqa: S608 our own words
_REPLACE = f"""
    UPDATE sweephand.lease
    SET holder = %(holder)s, lease_seconds = %(lease_seconds)s, acquired_at = %(acquired_at)s,
        renewed_at = %(renewed_at)s, transitions = %(transitions)s, version = version + 1
    WHERE name = %(name)s AND version = %(version)s
    RETURNING {_COLUMNS}"""  # noqa: S608 our own words


class PostgresLease:
    """A `LeaseStore` on one row of sweephand.lease, over one connection that is opened anew after any trouble."""

    def __init__(self, database_url: str, *, name: str, prepare: bool = True) -> None:
        """Take the address; nothing is opened yet. `prepare=False` for PgBouncer."""
        self._database_url = database_url
        self._name = name
        self._prepare = prepare
        self._connection: psycopg.AsyncConnection | None = None
        self._given_up: set[asyncio.Task[tuple[psycopg.AsyncConnection, TupleRow | None]]] = set()

    async def get(self) -> StoredLease:
        """Return the row."""
        row = await self._ask(_GET, {"name": self._name}, verb="select")
        if row is None:
            raise LeaseMissingError(f"there is no row {self._name!r} in sweephand.lease")
        return _stored(row)

    async def create(self, record: LeaseRecord) -> StoredLease:
        """Insert the row."""
        row = await self._ask(_CREATE, {"name": self._name, **_values(record)}, verb="insert")
        if row is None:
            raise LeaseConflictError(f"another process made the row {self._name!r} in sweephand.lease first")
        return _stored(row)

    async def replace(self, stored: StoredLease, *, record: LeaseRecord) -> StoredLease:
        """Update the row if it still has the version that was read."""
        row = await self._ask(_REPLACE, {"name": self._name, "version": int(stored.version), **_values(record)}, verb="update")
        if row is None:
            raise LeaseConflictError(f"the row {self._name!r} in sweephand.lease was changed since it was read")
        return _stored(row)

    async def close(self) -> None:
        """Close the connection, and end what was given up."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
        for task in self._given_up:
            task.cancel()
        await asyncio.gather(*self._given_up, return_exceptions=True)

    async def _ask(self, statement: str, values: Mapping[str, object], *, verb: str) -> TupleRow | None:
        # psycopg answers a cancellation by talking to the server first, for up to 10 s in a black hole. A lease cannot
        # wait so long, so the statement runs in a task of its own, which is left to its end.
        connection, self._connection = self._connection, None
        task = asyncio.create_task(self._execute(connection, statement, values))
        try:
            self._connection, row = await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            self._given_up.add(task)
            task.add_done_callback(self._forget)
            raise
        except psycopg.errors.InsufficientPrivilege as error:
            user = psycopg.conninfo.conninfo_to_dict(self._database_url.replace("+psycopg", "", 1)).get("user")
            raise LeaseForbiddenError(
                verb=verb, resource="the row of sweephand.lease", name=self._name, subject=f"database user {user}"
            ) from error
        except (psycopg.Error, DatabaseError) as error:
            raise _unavailable(error) from error
        return row

    async def _execute(
        self, connection: psycopg.AsyncConnection | None, statement: str, values: Mapping[str, object]
    ) -> tuple[psycopg.AsyncConnection, TupleRow | None]:
        if connection is None or connection.closed:
            connection = await connect_async(self._database_url, application_name="sweephand-lease", prepare=self._prepare)
        try:
            cursor = await connection.execute(statement.encode(), values)
            return connection, await cursor.fetchone()
        except BaseException:
            await connection.close()
            raise

    def _forget(self, task: "asyncio.Task[tuple[psycopg.AsyncConnection, TupleRow | None]]") -> None:
        self._given_up.discard(task)
        if not task.cancelled() and task.exception() is None:
            # It had ended just before it was cancelled.
            connection, _ = task.result()
            connection.pgconn.finish()


def _values(record: LeaseRecord) -> dict[str, object]:
    return {
        "holder": record.holder,
        "lease_seconds": record.lease_seconds,
        "acquired_at": record.acquired_at,
        "renewed_at": record.renewed_at,
        "transitions": record.transitions,
    }


def _stored(row: TupleRow) -> StoredLease:
    holder, lease_seconds, acquired_at, renewed_at, transitions, version = row
    record = LeaseRecord(str(holder), int(lease_seconds), _utc(acquired_at), _utc(renewed_at), int(transitions))
    return StoredLease(record, version=str(version), body={})


def _utc(moment: object) -> datetime | None:
    return moment.astimezone(UTC) if isinstance(moment, datetime) else None


def _unavailable(error: psycopg.Error | DatabaseError) -> LeaseError:
    text = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    match error:
        case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName():
            return LeaseUnavailableError("there is no table sweephand.lease; run `sweephand migrate`", failure=LeaseFailure.OTHER)
        case DatabaseError() | psycopg.errors.ConnectionException() | psycopg.InterfaceError():
            return LeaseUnavailableError(text, failure=LeaseFailure.NETWORK)
        case psycopg.OperationalError():
            # A connection that broke has no SQLSTATE; everything else was said by the server.
            return LeaseUnavailableError(text, failure=LeaseFailure.SERVER if error.sqlstate else LeaseFailure.NETWORK)
        case _:
            return LeaseUnavailableError(text, failure=LeaseFailure.SERVER)
