"""Work on a connection ends in time, whether the server is slow, frozen or fine."""

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest

from sweephand.postgres.bounded import bounded
from sweephand.postgres.connect import connect_async
from tests.support.network import DatabaseGate
from tests.support.waiting import until_async


@pytest.fixture
def gate(module_database_url: str) -> Iterator[DatabaseGate]:
    gate = DatabaseGate(module_database_url)
    yield gate
    gate.close()


async def sleep_on_server(connection: psycopg.AsyncConnection) -> None:
    await connection.execute("SELECT pg_sleep(60)")


async def is_sleeping(connection: psycopg.Connection) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
    )
    return found.fetchone() == (1,)


async def sleeps_no_more(connection: psycopg.Connection) -> bool:
    return not await is_sleeping(connection)


async def test_what_is_done_in_time_is_returned(module_database_url: str) -> None:
    async def ask(connection: psycopg.AsyncConnection) -> int:
        row = await (await connection.execute("SELECT 7")).fetchone()
        return 0 if row is None else int(row[0])

    async with await connect_async(module_database_url, application_name="bounded") as connection:
        assert await bounded(connection, ask(connection), seconds=10) == 7


async def test_its_own_errors_come_through(module_database_url: str) -> None:
    async def ask(connection: psycopg.AsyncConnection) -> None:
        await connection.execute("SELECT 1 / 0")

    async with await connect_async(module_database_url, application_name="bounded") as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await bounded(connection, ask(connection), seconds=10)


async def test_a_slow_statement_is_cancelled_at_the_server_and_the_connection_lives(module_database_url: str) -> None:
    async with await connect_async(module_database_url, application_name="bounded") as connection:
        with pytest.raises(TimeoutError, match=r"not done within 0\.2 s"):
            await bounded(connection, sleep_on_server(connection), seconds=0.2)

        assert (await (await connection.execute("SELECT 7")).fetchone()) == (7,)


async def test_a_cancelled_task_cancels_its_statement(connection: psycopg.Connection, module_database_url: str) -> None:
    async with await connect_async(module_database_url, application_name="bounded") as slow:
        task = asyncio.create_task(bounded(slow, sleep_on_server(slow), seconds=60))
        await until_async(lambda: is_sleeping(connection), message="it sleeps")

        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task
        await until_async(lambda: sleeps_no_more(connection), message="the server has stopped")


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_server_that_never_answers_costs_about_a_second(gate: DatabaseGate, *, is_cancelled: bool) -> None:
    async with await connect_async(gate.url, application_name="bounded") as connection:
        gate.freeze()
        task = asyncio.create_task(bounded(connection, sleep_on_server(connection), seconds=60 if is_cancelled else 0.2))
        await asyncio.wait({task}, timeout=0.1)  # it has begun
        began = time.monotonic()

        if is_cancelled:
            task.cancel()

        with pytest.raises(asyncio.CancelledError if is_cancelled else TimeoutError):
            await task
        assert time.monotonic() - began < 8
        assert connection.broken
