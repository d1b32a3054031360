"""Run statements in the transaction that a caller has open, whatever driver the caller holds.

What is to be done is written once, as a generator that yields a statement and is sent the rows; the six kinds of connection
differ only in how they execute it.
"""

import functools
import re
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar, overload

import psycopg
import psycopg.rows
from psycopg.pq import TransactionStatus

from sweephand.model.errors import NoTransactionError

if TYPE_CHECKING:
    from sqlalchemy import Connection, TextClause
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

T = TypeVar("T")
Rows: TypeAlias = Sequence[Sequence[object]]
SQLAlchemySync: TypeAlias = "Session | scoped_session[Session] | Connection"
SQLAlchemyAsync: TypeAlias = "AsyncSession | async_scoped_session[AsyncSession] | AsyncConnection"
AnySync: TypeAlias = "SQLAlchemySync | psycopg.Connection[object]"
AnyAsync: TypeAlias = "SQLAlchemyAsync | psycopg.AsyncConnection[object]"


@dataclass(frozen=True)
class Statement:
    """Be an SQL text whose values stand as `:name`; casts are written CAST(:name AS type), so that every driver knows them.

    `is_psycopg`: it has psycopg's placeholders and reaches no other driver.
    """

    text: str
    is_psycopg: bool = False

    @functools.cached_property
    def for_psycopg(self) -> str:
        """Return the text with psycopg's placeholders."""
        return self.text if self.is_psycopg else re.sub(r":(\w+)", r"%(\1)s", self.text)

    @functools.cached_property
    def for_sqlalchemy(self) -> "TextClause":
        """Return the text as SQLAlchemy takes it, for any of its drivers."""
        from sqlalchemy import text

        return text(self.text)


Plan: TypeAlias = Generator[tuple[Statement, Mapping[str, object]], Rows, T]


@overload
def run(connection: "AnySync", plan: Plan[T]) -> T: ...
@overload
def run(connection: "AnyAsync", plan: Plan[T]) -> Awaitable[T]: ...
def run(connection: "AnySync | AnyAsync", plan: Plan[T]) -> T | Awaitable[T]:
    """Execute the plan's statements in the open transaction and return its result; for an async connection, an awaitable.

    Raises:
        NoTransactionError: no transaction is open, or the driver commits each statement by itself.
        TypeError: the connection is none of the known kinds.
    """
    if isinstance(connection, psycopg.Connection):
        return _on_psycopg(connection, plan)
    if isinstance(connection, psycopg.AsyncConnection):
        return _on_async_psycopg(connection, plan)
    return _on_sqlalchemy(connection, plan)


def _on_psycopg(connection: "psycopg.Connection[object]", plan: Plan[T]) -> T:
    if connection.info.transaction_status is TransactionStatus.IDLE:
        raise NoTransactionError(_refusal("psycopg connection", "with connection.transaction():"))
    # Not the connection's own kind of cursor: a RawCursor takes other placeholders.
    with psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
        return _drive(plan, lambda statement, values: cursor.execute(statement.for_psycopg, values).fetchall())


async def _on_async_psycopg(connection: "psycopg.AsyncConnection[object]", plan: Plan[T]) -> T:
    if connection.info.transaction_status is TransactionStatus.IDLE:
        raise NoTransactionError(_refusal("psycopg connection", "async with connection.transaction():"))
    async with psycopg.AsyncCursor(connection, row_factory=psycopg.rows.tuple_row) as cursor:
        try:
            statement, values = next(plan)
            while True:
                await cursor.execute(statement.for_psycopg, values)
                statement, values = plan.send(await cursor.fetchall())
        except StopIteration as stop:
            return _returned(stop)


def _on_sqlalchemy(connection: "SQLAlchemySync | SQLAlchemyAsync", plan: Plan[T]) -> T | Awaitable[T]:
    # Imported only where a caller already has it: a worker that never enqueues this way saves 20 MB.
    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

    if isinstance(connection, scoped_session | async_scoped_session):
        connection = connection()
    match connection:
        case Session():
            if not connection.in_transaction():
                raise NoTransactionError(_refusal("Session", "with session.begin():"))
            return _on_connection(connection.connection(), plan)
        case Connection():
            return _on_connection(connection, plan)
        case AsyncSession():
            return _on_async_session(connection, plan)
        case AsyncConnection():
            return _on_async_connection(connection, plan)
        case _:
            raise TypeError(
                f"got {type(connection).__name__}; pass a SQLAlchemy Session, AsyncSession, Connection or AsyncConnection, "
                "or a psycopg connection, with its transaction open"
            )


def _on_connection(connection: "Connection", plan: Plan[T]) -> T:
    # The driver may commit each statement by itself, whatever SQLAlchemy's own transaction says.
    if not connection.in_transaction() or getattr(connection.connection.dbapi_connection, "autocommit", False):
        raise NoTransactionError(_refusal("Connection", "with connection.begin():"))
    return _drive(plan, functools.partial(_execute_on_sqlalchemy, connection))


def _execute_on_sqlalchemy(connection: "Connection", statement: Statement, values: Mapping[str, object]) -> Rows:
    # psycopg gets its own form of the text: SQLAlchemy's way through text() takes as long as all the rest of an enqueue.
    if statement.is_psycopg or connection.dialect.driver == "psycopg":
        return connection.exec_driver_sql(statement.for_psycopg, dict(values)).all()
    return connection.execute(statement.for_sqlalchemy, dict(values)).all()


async def _on_async_session(session: "AsyncSession", plan: Plan[T]) -> T:
    if not session.in_transaction():
        raise NoTransactionError(_refusal("AsyncSession", "async with session.begin():"))
    return await _on_async_connection(await session.connection(), plan)


async def _on_async_connection(connection: "AsyncConnection", plan: Plan[T]) -> T:
    if not connection.in_transaction():
        raise NoTransactionError(_refusal("AsyncConnection", "async with connection.begin():"))
    return await connection.run_sync(_on_connection, plan)


def _drive(plan: Plan[T], execute: Callable[[Statement, Mapping[str, object]], Rows]) -> T:
    try:
        statement, values = next(plan)
        while True:
            statement, values = plan.send(execute(statement, values))
    except StopIteration as stop:
        return _returned(stop)


def _returned(stop: StopIteration) -> T:  # type: ignore[type-var]  # the plan's own result, which StopIteration does not type
    result: T = stop.value
    return result


def _refusal(what: str, how: str) -> str:
    return f"a job joins the caller's open transaction, and this {what} has none; call it inside `{how}`"
