"""Enqueue a job in the caller's open transaction, whatever driver the caller holds.

One statement for a job, one round trip. The server computes the unique key; a duplicate inserts nothing and is answered
with the id of the unfinished job. NOTIFY goes out with the caller's commit, and the caller's rollback takes all of it back.
`ALTER DATABASE … SET sweephand.notify = off` silences NOTIFY; workers then find jobs by polling.
"""

import functools
import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, overload

import psycopg
import psycopg.rows
from psycopg.pq import TransactionStatus

from sweephand.job import Job
from sweephand.model.errors import ConflictError, NoTransactionError

if TYPE_CHECKING:
    from sqlalchemy import Connection, TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

P = ParamSpec("P")
Values: TypeAlias = Mapping[str, object]
SQLAlchemySync: TypeAlias = "Session | scoped_session[Session] | Connection"
SQLAlchemyAsync: TypeAlias = "AsyncSession | async_scoped_session[AsyncSession] | AsyncConnection"
AnySync: TypeAlias = "SQLAlchemySync | psycopg.Connection[object]"
AnyAsync: TypeAlias = "SQLAlchemyAsync | psycopg.AsyncConnection[object]"

# A duplicate that commits while the statement runs is invisible to its snapshot: no row comes back, and the next try sees
# it. It can finish and be replaced meanwhile, hence several tries, and an error if even they find nothing.
_TRIES = 5

_STATEMENT = """
WITH given AS (
    SELECT CASE WHEN CAST(:is_unique AS boolean) THEN
               sweephand.unique_key(CAST(:kind AS text), CAST(:args AS jsonb), CAST(:counted AS text[]))
           END AS unique_key,
           coalesce(CAST(:scheduled_at AS timestamptz), now() + make_interval(secs => CAST(:delay AS float8)))
               AS scheduled_at
), inserted AS (
    INSERT INTO sweephand.job (kind, queue, args, state, max_attempts, timeout_seconds, retain_seconds,
                               unique_key, unique_until_start, scheduled_at)
    SELECT CAST(:kind AS text), CAST(:queue AS text), CAST(:args AS jsonb),
           CASE WHEN scheduled_at > now() THEN 'scheduled' ELSE 'available' END,
           CAST(:max_attempts AS integer), CAST(:timeout AS float8), CAST(:retain AS float8),
           unique_key, CAST(:until_start AS boolean), coalesce(scheduled_at, now())
    FROM given
    ON CONFLICT (unique_key)
        WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'available', 'running', 'retryable')
        DO NOTHING
    RETURNING id, queue, state
), notified AS (
    SELECT pg_notify('sweephand.' || queue, '') FROM inserted
    WHERE state = 'available' AND current_setting('sweephand.notify', true) IS DISTINCT FROM 'off'
)
SELECT id, false AS is_duplicate FROM inserted LEFT JOIN notified ON true
UNION ALL
SELECT job.id, true FROM sweephand.job JOIN given USING (unique_key)
WHERE job.state IN ('scheduled', 'available', 'running', 'retryable') AND NOT EXISTS (SELECT FROM inserted)
LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class EnqueueOutcome:
    """Say which job stands for the call: a new one, or the unfinished one with equal arguments."""

    job_id: int
    is_duplicate: bool


@overload
def enqueue(connection: "AnySync", job: Job[P], /, *args: P.args, **kwargs: P.kwargs) -> EnqueueOutcome: ...
@overload
def enqueue(connection: "AnyAsync", job: Job[P], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[EnqueueOutcome]: ...
def enqueue(
    connection: "AnySync | AnyAsync", job: Job[P], /, *args: P.args, **kwargs: P.kwargs
) -> EnqueueOutcome | Awaitable[EnqueueOutcome]:
    """Enqueue `job` with these arguments in the transaction that is open on `connection`.

    `connection` is a SQLAlchemy Session, AsyncSession, Connection or AsyncConnection, or a psycopg connection; for the
    async ones the result is awaited. `job.at(…)` and `job.after(…)` schedule it for later. The job exists once the caller
    commits; a rollback, also to a savepoint, takes it back.

    Raises:
        NoTransactionError: no transaction is open on the connection.
        ArgumentsError: the arguments do not fit the job's parameters or cannot be stored.
        ConflictError: equal jobs came and went faster than could be answered; try again.
    """
    values = _values(job, job.encode(job.bind(*args, **kwargs)))
    if isinstance(connection, psycopg.Connection):
        return _on_psycopg(connection, values)
    if isinstance(connection, psycopg.AsyncConnection):
        return _on_async_psycopg(connection, values)
    return _on_sqlalchemy(connection, values)


def enqueue_encoded(connection: "psycopg.Connection[object]", job: Job[...], args: str) -> EnqueueOutcome:
    """Enqueue a job whose arguments are JSON text already; otherwise as `enqueue`.

    Raises:
        NoTransactionError: no transaction is open on the connection.
        ConflictError: equal jobs came and went faster than could be answered.
    """
    return _on_psycopg(connection, _values(job, args))


def _on_psycopg(connection: "psycopg.Connection[object]", values: Values) -> EnqueueOutcome:
    if connection.info.transaction_status is TransactionStatus.IDLE:
        raise NoTransactionError(_no_transaction("psycopg connection", "with connection.transaction():"))
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        for _ in range(_TRIES):
            row = cursor.execute(_psycopg_statement(), values).fetchone()
            if row is not None:
                return EnqueueOutcome(*row)
    raise _never_seen(values)


async def _on_async_psycopg(connection: "psycopg.AsyncConnection[object]", values: Values) -> EnqueueOutcome:
    if connection.info.transaction_status is TransactionStatus.IDLE:
        raise NoTransactionError(_no_transaction("psycopg connection", "async with connection.transaction():"))
    async with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        for _ in range(_TRIES):
            row = await (await cursor.execute(_psycopg_statement(), values)).fetchone()
            if row is not None:
                return EnqueueOutcome(*row)
    raise _never_seen(values)


def _on_sqlalchemy(connection: "SQLAlchemySync | SQLAlchemyAsync", values: Values) -> EnqueueOutcome | Awaitable[EnqueueOutcome]:
    # Imported only when a caller already has it: a worker that never enqueues this way saves 20 MB.
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    if isinstance(connection, scoped_session | async_scoped_session):
        connection = connection()
    match connection:
        case Session():
            if not connection.in_transaction():
                raise NoTransactionError(_no_transaction("Session", "with session.begin():"))
            return _on_connection(connection.connection(), values)
        case Connection():
            return _on_connection(connection, values)
        case AsyncSession():
            return _on_async_session(connection, values)
        case AsyncConnection():
            return _on_async_connection(connection, values)
        case _:
            raise TypeError(
                f"enqueue got {type(connection).__name__}; pass a SQLAlchemy Session, AsyncSession, Connection or "
                "AsyncConnection, or a psycopg connection, with its transaction open"
            )


def _on_connection(connection: "Connection", values: Values) -> EnqueueOutcome:
    if not connection.in_transaction() or _is_autocommit(connection):
        raise NoTransactionError(_no_transaction("Connection", "with connection.begin():"))
    for _ in range(_TRIES):
        row = connection.execute(_sqlalchemy_statement(), values).first()
        if row is not None:
            return EnqueueOutcome(*row)
    raise _never_seen(values)


async def _on_async_session(session: "AsyncSession", values: Values) -> EnqueueOutcome:
    if not session.in_transaction():
        raise NoTransactionError(_no_transaction("AsyncSession", "async with session.begin():"))
    return await _on_async_connection(await session.connection(), values)


async def _on_async_connection(connection: "AsyncConnection", values: Values) -> EnqueueOutcome:
    if not connection.in_transaction():
        raise NoTransactionError(_no_transaction("AsyncConnection", "async with connection.begin():"))
    return await connection.run_sync(_on_connection, values)


def _is_autocommit(connection: "Connection") -> bool:
    """Tell whether the driver commits each statement, whatever SQLAlchemy's transaction says."""
    return bool(getattr(connection.connection.dbapi_connection, "autocommit", False))


@functools.cache
def _psycopg_statement() -> str:
    return re.sub(r":(\w+)", r"%(\1)s", _STATEMENT)


@functools.cache
def _sqlalchemy_statement() -> "TextClause":
    from sqlalchemy import text

    return text(_STATEMENT)


def _values(job: Job[P], args: str) -> Values:
    return {
        "kind": job.kind,
        "queue": job.queue,
        "args": args,
        "is_unique": job.unique.mode is not None,
        "until_start": job.unique.mode == "until_start",
        "counted": None if job.unique.args is None else list(job.unique.args),
        "max_attempts": job.max_attempts,
        "timeout": job.timeout.total_seconds(),
        "retain": None if job.retain is None else job.retain.total_seconds(),
        "scheduled_at": job.scheduled_at,
        "delay": None if job.delay is None else job.delay.total_seconds(),
    }


def _no_transaction(what: str, how: str) -> str:
    return f"enqueue needs the caller's open transaction, and this {what} has none; call it inside `{how}`"


def _never_seen(values: Values) -> ConflictError:
    return ConflictError(f"equal {values['kind']} jobs kept coming and going through {_TRIES} tries; enqueue again")
