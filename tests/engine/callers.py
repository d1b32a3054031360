"""Hold a caller's connection in every driver that enqueue takes, all used alike, so that one test can run with each."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, contextmanager
from types import MappingProxyType
from typing import LiteralString, Protocol, TypeAlias

import psycopg
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncEngine,
    AsyncSession,
    async_scoped_session,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

from sweephand import App, EnqueueOutcome, Job, enqueue, enqueue_many
from sweephand.postgres.connect import conninfo

app = App("callers")


@app.job()
def mend(product_id: int) -> None:
    pass


class Caller(Protocol):
    """Be an application's connection; `transaction` and `savepoint` are its driver's own. For one thread."""

    def transaction(self) -> AbstractContextManager[None]: ...

    def savepoint(self) -> AbstractContextManager[None]: ...

    def execute(self, statement: LiteralString) -> None: ...

    def enqueue(self, job: Job[[int]], product_id: int) -> EnqueueOutcome: ...

    def enqueue_many(self, job: Job[[int]], product_ids: Iterable[int]) -> list[EnqueueOutcome]: ...


class PsycopgCaller:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._connection.transaction():
            yield

    savepoint = transaction

    def execute(self, statement: LiteralString) -> None:
        self._connection.execute(statement)

    def enqueue(self, job: Job[[int]], product_id: int) -> EnqueueOutcome:
        return enqueue(self._connection, job, product_id)

    def enqueue_many(self, job: Job[[int]], product_ids: Iterable[int]) -> list[EnqueueOutcome]:
        return enqueue_many(self._connection, job, _named(product_ids))


class AsyncPsycopgCaller:
    def __init__(self, runner: asyncio.Runner, connection: psycopg.AsyncConnection) -> None:
        self._runner = runner
        self._connection = connection

    def transaction(self) -> AbstractContextManager[None]:
        return _entered(self._runner, self._connection.transaction())

    savepoint = transaction

    def execute(self, statement: LiteralString) -> None:
        async def run() -> None:
            await self._connection.execute(statement)

        self._runner.run(run())

    def enqueue(self, job: Job[[int]], product_id: int) -> EnqueueOutcome:
        async def run() -> EnqueueOutcome:
            return await enqueue(self._connection, job, product_id)

        return self._runner.run(run())

    def enqueue_many(self, job: Job[[int]], product_ids: Iterable[int]) -> list[EnqueueOutcome]:
        async def run() -> list[EnqueueOutcome]:
            return await enqueue_many(self._connection, job, _named(product_ids))

        return self._runner.run(run())


Sync: TypeAlias = Session | scoped_session[Session] | Connection
Async: TypeAlias = AsyncSession | async_scoped_session[AsyncSession] | AsyncConnection


class SqlalchemyCaller:
    def __init__(self, connection: Sync) -> None:
        self._connection = connection

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._connection.begin():
            yield

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        with self._connection.begin_nested():
            yield

    def execute(self, statement: LiteralString) -> None:
        self._connection.execute(text(statement))

    def enqueue(self, job: Job[[int]], product_id: int) -> EnqueueOutcome:
        return enqueue(self._connection, job, product_id)

    def enqueue_many(self, job: Job[[int]], product_ids: Iterable[int]) -> list[EnqueueOutcome]:
        return enqueue_many(self._connection, job, _named(product_ids))


class AsyncSqlalchemyCaller:
    def __init__(self, runner: asyncio.Runner, connection: Async) -> None:
        self._runner = runner
        self._connection = connection

    def transaction(self) -> AbstractContextManager[None]:
        return _entered(self._runner, self._connection.begin())

    def savepoint(self) -> AbstractContextManager[None]:
        return _entered(self._runner, self._connection.begin_nested())

    def execute(self, statement: LiteralString) -> None:
        async def run() -> None:
            await self._connection.execute(text(statement))

        self._runner.run(run())

    def enqueue(self, job: Job[[int]], product_id: int) -> EnqueueOutcome:
        async def run() -> EnqueueOutcome:
            return await enqueue(self._connection, job, product_id)

        return self._runner.run(run())

    def enqueue_many(self, job: Job[[int]], product_ids: Iterable[int]) -> list[EnqueueOutcome]:
        async def run() -> list[EnqueueOutcome]:
            return await enqueue_many(self._connection, job, _named(product_ids))

        return self._runner.run(run())


def _named(product_ids: Iterable[int]) -> list[dict[str, object]]:
    return [{"product_id": product_id} for product_id in product_ids]


@contextmanager
def _entered(runner: asyncio.Runner, context: AbstractAsyncContextManager[object]) -> Iterator[None]:
    async def enter() -> None:
        await context.__aenter__()

    async def leave(error: BaseException | None) -> None:
        await context.__aexit__(type(error) if error else None, error, error.__traceback__ if error else None)

    runner.run(enter())
    try:
        yield
    except BaseException as error:
        runner.run(leave(error))
        raise
    runner.run(leave(None))


@contextmanager
def _psycopg(url: str, isolation: str | None) -> Iterator[Caller]:
    del isolation
    with psycopg.connect(conninfo(url, application_name="caller"), autocommit=True) as connection:
        yield PsycopgCaller(connection)


@contextmanager
def _psycopg_async(url: str, isolation: str | None) -> Iterator[Caller]:
    del isolation
    with asyncio.Runner() as runner:
        target = conninfo(url, application_name="caller")
        connection = runner.run(psycopg.AsyncConnection.connect(target, autocommit=True))
        try:
            yield AsyncPsycopgCaller(runner, connection)
        finally:
            runner.run(connection.close())


def _sqlalchemy(driver: str, handle: str) -> Callable[[str, str | None], AbstractContextManager[Caller]]:
    @contextmanager
    def open_caller(url: str, isolation: str | None) -> Iterator[Caller]:
        engine = create_engine(_url(url, driver=driver), poolclass=NullPool, isolation_level=isolation or "READ COMMITTED")
        with ExitStack() as closing:
            closing.callback(engine.dispose)
            connection: Sync
            match handle:
                case "Connection":
                    connection = closing.enter_context(engine.connect())
                case "Session":
                    connection = closing.enter_context(Session(engine))
                case _:
                    connection = scoped_session(sessionmaker(engine))
                    closing.callback(connection.remove)
            yield SqlalchemyCaller(connection)

    return open_caller


def _sqlalchemy_async(driver: str, handle: str) -> Callable[[str, str | None], AbstractContextManager[Caller]]:
    @contextmanager
    def open_caller(url: str, isolation: str | None) -> Iterator[Caller]:
        engine = create_async_engine(_url(url, driver=driver), poolclass=NullPool, isolation_level=isolation or "READ COMMITTED")
        with asyncio.Runner() as runner:
            connection = _async_handle(handle, engine=engine, runner=runner)
            try:
                yield AsyncSqlalchemyCaller(runner, connection)
            finally:
                runner.run(connection.close())
                runner.run(engine.dispose())

    return open_caller


def _async_handle(handle: str, *, engine: AsyncEngine, runner: asyncio.Runner) -> Async:
    match handle:
        case "AsyncConnection":
            return runner.run(_connected(engine))
        case "AsyncSession":
            return AsyncSession(engine)
        case _:
            # Each call runs in a task of its own here, so the scope is the caller's only one.
            return async_scoped_session(async_sessionmaker(engine), scopefunc=lambda: None)


async def _connected(engine: AsyncEngine) -> AsyncConnection:
    return await engine.connect()


def _url(url: str, *, driver: str) -> str:
    return f"postgresql+{driver}://{url.partition('://')[2]}"


DRIVERS: Mapping[str, Callable[[str, str | None], AbstractContextManager[Caller]]] = MappingProxyType(
    {
        "psycopg": _psycopg,
        "psycopg async": _psycopg_async,
        "Session": _sqlalchemy("psycopg", "Session"),
        "scoped_session": _sqlalchemy("psycopg", "scoped_session"),
        "Connection": _sqlalchemy("psycopg", "Connection"),
        "Session on psycopg2": _sqlalchemy("psycopg2", "Session"),
        "Connection on psycopg2": _sqlalchemy("psycopg2", "Connection"),
        "AsyncSession": _sqlalchemy_async("psycopg", "AsyncSession"),
        "async_scoped_session": _sqlalchemy_async("psycopg", "async_scoped_session"),
        "AsyncConnection": _sqlalchemy_async("psycopg", "AsyncConnection"),
        "AsyncSession on asyncpg": _sqlalchemy_async("asyncpg", "AsyncSession"),
        "AsyncConnection on asyncpg": _sqlalchemy_async("asyncpg", "AsyncConnection"),
    }
)
"""Each opens a caller; the second argument is SQLAlchemy's isolation level, None for the usual one."""
