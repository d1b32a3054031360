"""A database that is away: the tick loop is back soon after it, however long it took."""

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.engine.apps import secondly
from tests.engine.dispatching import dispatching
from tests.engine.ticking import stored_ticks
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
        before = await until_async(lambda: ok_ticks(connection, more_than=0), deadline_seconds=20, message="it ticks")
        gate.refuse()
        ends_at = time.monotonic() + OUTAGE_SECONDS

        async def is_over() -> bool:
            return time.monotonic() >= ends_at

        await until_async(is_over, deadline_seconds=2 * OUTAGE_SECONDS, message="the outage is over")
        before = await ok_ticks(connection, more_than=before - 1)
        gate.open()

        await until_async(lambda: ok_ticks(connection, more_than=before), deadline_seconds=8, message="it ticks again")

    rows = connection.execute("""
        SELECT cause, sum(covers)::int FROM sweephand.tick WHERE cause IS NOT NULL AND term = 1 GROUP BY cause""").fetchall()
    causes = {str(cause): int(covers) for cause, covers in rows}
    assert causes["db_down"] >= OUTAGE_SECONDS - 3
