"""Tell the kinds of connection apart, and open savepoints on them."""

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, TypeGuard

import psycopg

if TYPE_CHECKING:
    from sweephand.postgres.callers_transaction import AnyAsync, AnySync


def is_async(connection: "AnySync | AnyAsync") -> "TypeGuard[AnyAsync]":
    """Tell whether what is done on the connection is awaited."""
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session

    return isinstance(connection, psycopg.AsyncConnection | AsyncConnection | AsyncSession | async_scoped_session)


def savepoint(connection: "AnySync") -> AbstractContextManager[object]:
    """Return a block that an exception rolls back, within the transaction that is open."""
    return connection.transaction() if isinstance(connection, psycopg.Connection) else connection.begin_nested()


def async_savepoint(connection: "AnyAsync") -> AbstractAsyncContextManager[object]:
    """Return what `savepoint` returns, for an async connection."""
    return connection.transaction() if isinstance(connection, psycopg.AsyncConnection) else connection.begin_nested()
