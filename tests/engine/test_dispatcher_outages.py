"""A database that is away: the tick loop is back soon after it, however long it took."""

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from tests.engine.apps import secondly
from tests.engine.dispatching import dispatching
from tests.engine.ticking import stored_ticks
from tests.support.databases import Databases
from tests.support.jobs import open_connection
from tests.support.network import DatabaseGate
from tests.support.waiting import until_async

OUTAGE_SECONDS = 16
"""Long enough for a retry that doubles its wait (1, 2, 4, 8 s …) to be 15 s late."""


@pytest.fixture
def gate(module_database_url: str) -> Iterator[DatabaseGate]:
    gate = DatabaseGate(module_database_url)
    yield gate
    gate.close()


async def ok_ticks(connection: psycopg.Connection, *, more_than: int) -> int:
    ticks = await asyncio.to_thread(stored_ticks, connection)
    count = sum(tick.outcome in {"ok", "empty"} for tick in ticks)
    return count if count > more_than else 0


async def test_after_an_outage_the_next_tick_is_not_as_late_as_the_outage_was_long(
    connection: psycopg.Connection, gate: DatabaseGate
) -> None:
    async with dispatching(gate.url, secondly()):
        before = await until_async(lambda: ok_ticks(connection, more_than=0), message="it ticks")
        gate.refuse()
        ends_at = time.monotonic() + OUTAGE_SECONDS

        async def is_over() -> bool:
            return time.monotonic() >= ends_at

        await until_async(is_over, deadline_seconds=2 * OUTAGE_SECONDS, message="the outage is over")
        before = await ok_ticks(connection, more_than=before - 1)
        gate.open()

        await until_async(lambda: ok_ticks(connection, more_than=before), deadline_seconds=8, message="it ticks again")

    assert causes(connection)["db_down"] >= OUTAGE_SECONDS - 3


async def test_a_primary_that_was_read_only_for_a_while_is_used_again_within_seconds(
    databases: Databases, database_url: str
) -> None:
    name = Identifier(database_url.partition("?")[0].rpartition("/")[2])
    with open_connection(databases.server_url) as admin, open_connection(database_url) as connection:
        connection.execute("CREATE TABLE product (id int)")
        async with dispatching(database_url, secondly()):
            await until_async(lambda: ok_ticks(connection, more_than=0), message="it ticks")

            # As behind a proxy that goes on to another server: sessions begin read-only, and stay so.
            admin.execute(SQL("ALTER DATABASE {} SET default_transaction_read_only = on").format(name))
            sever_dispatcher(connection)
            stopped = await until_async(lambda: is_refused(connection), message="it may not write")
            admin.execute(SQL("ALTER DATABASE {} RESET default_transaction_read_only").format(name))

            await until_async(lambda: ok_ticks(connection, more_than=stopped), deadline_seconds=15, message="it ticks again")

        # It answered what was due all the while, and so knew in time of each tick that it could not write down.
        assert causes(connection).keys() == {"db_down"}


def causes(connection: psycopg.Connection) -> dict[str, int]:
    """Return for how many planned ticks the first term gives each cause."""
    rows = connection.execute("""
        SELECT cause, sum(covers)::int FROM sweephand.tick WHERE cause IS NOT NULL AND term = 1 GROUP BY cause""").fetchall()
    return {str(cause): int(covers) for cause, covers in rows}


def sever_dispatcher(connection: psycopg.Connection) -> None:
    connection.execute(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'sweephand dispatcher%%'""",
        {},
    )


async def is_refused(connection: psycopg.Connection) -> int:
    """Return how many ticks there are once three seconds have passed without a new one; 0 before."""
    row = connection.execute("""
        SELECT CASE WHEN now() - max(planned_at) > interval '3 s' THEN count(*) END FROM sweephand.tick""").fetchone()
    return 0 if row is None or row[0] is None else int(row[0])
