"""Open a transaction on each kind of connection that an application may hold."""

import inspect
from collections.abc import Callable
from typing import Literal, TypeAlias

import psycopg
from sqlalchemy import NullPool, create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from sweephand.postgres.callers_transaction import AnyAsync, AnySync
from sweephand.postgres.connect import sqlalchemy_url

ConnectionKind = Literal["Session", "Connection", "psycopg", "AsyncSession", "AsyncConnection", "async psycopg"]
CONNECTION_KINDS: tuple[ConnectionKind, ...] = (
    "Session",
    "Connection",
    "psycopg",
    "AsyncSession",
    "AsyncConnection",
    "async psycopg",
)
AnyConnection: TypeAlias = "AnySync | AnyAsync"
Action = Callable[[AnyConnection], object]


async def in_transaction(kind: ConnectionKind, database_url: str, *actions: Action) -> None:
    """Call the actions one after the other in one transaction, awaiting what can be awaited; an exception rolls it back."""
    url = sqlalchemy_url(database_url)
    match kind:
        case "Session":
            with Session(create_engine(url, poolclass=NullPool)) as session, session.begin():
                await _act(actions, session)
        case "Connection":
            with create_engine(url, poolclass=NullPool).begin() as connection:
                await _act(actions, connection)
        case "psycopg":
            with psycopg.connect(database_url) as own:
                own.execute("SELECT 1")
                await _act(actions, own)
        case "AsyncSession":
            async with AsyncSession(create_async_engine(url, poolclass=NullPool)) as async_session, async_session.begin():
                await _act(actions, async_session)
        case "AsyncConnection":
            async with create_async_engine(url, poolclass=NullPool).begin() as async_connection:
                await _act(actions, async_connection)
        case "async psycopg":
            async with await psycopg.AsyncConnection.connect(database_url) as async_own:
                await async_own.execute("SELECT 1")
                await _act(actions, async_own)


async def _act(actions: tuple[Action, ...], connection: AnyConnection) -> None:
    for action in actions:
        result = action(connection)
        if inspect.isawaitable(result):
            await result
