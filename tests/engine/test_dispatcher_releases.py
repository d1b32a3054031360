"""What a leader registers of its application, release after release, and what it leaves alone."""

import asyncio
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import SelectBase, column, select, table

from sweephand import App
from tests.engine.apps import at_times_without_start, hourly
from tests.engine.dispatching import dispatching
from tests.engine.message_gate import MessageGate
from tests.engine.ticking import stored_ticks
from tests.support.waiting import until_async

products = table("product", column("id"))


def release(name: str, **intervals: timedelta) -> App:
    """Return a release of an application: the names of its sweeps and how often each ticks."""
    app = App(name)

    @app.job()
    def mend(product_id: int) -> None:
        pass

    def broken_products() -> SelectBase:
        return select(products.c.id.label("product_id")).order_by(products.c.id)

    for sweep, interval in intervals.items():
        app.sweep(every=interval, enqueues=mend, name=sweep)(broken_products)
    return app


@pytest.fixture
def tables(connection: psycopg.Connection) -> psycopg.Connection:
    for statement in ("DELETE FROM sweephand.tick", "DELETE FROM sweephand.sweep", "DELETE FROM sweephand.leader"):
        connection.execute(statement.encode())
    connection.execute("INSERT INTO product VALUES (1)")
    return connection


def registered(connection: psycopg.Connection) -> dict[tuple[str, str], tuple[str, int]]:
    rows = connection.execute("SELECT app, name, schedule, registered_term FROM sweephand.sweep").fetchall()
    return {(app, name): (schedule, term) for app, name, schedule, term in rows}


async def lead_until_ticked(database_url: str, app: App, connection: psycopg.Connection, *, ticks: int) -> None:
    async def has_ticked() -> bool:
        return len(await asyncio.to_thread(stored_ticks, connection)) >= ticks

    async with dispatching(database_url, app):
        await until_async(has_ticked, message=f"there are {ticks} ticks")


async def test_sweeps_that_change_come_and_go_between_releases(tables: psycopg.Connection, module_database_url: str) -> None:
    hour, minute = timedelta(hours=1), timedelta(seconds=60)
    await lead_until_ticked(module_database_url, release("shop", kept=hour, dropped=hour), tables, ticks=2)

    await lead_until_ticked(module_database_url, release("shop", kept=minute, added=hour), tables, ticks=3)

    assert registered(tables) == {
        ("shop", "kept"): ("every 60 s", 2),
        ("shop", "dropped"): ("every 3600 s", 1),
        ("shop", "added"): ("every 3600 s", 2),
    }
    assert [(tick.sweep, tick.term) for tick in stored_ticks(tables)][2:] == [("added", 2)]
    seconds = tables.execute(
        "SELECT extract(epoch FROM next_tick_at - now()) FROM sweephand.sweep WHERE name = 'kept'"
    ).fetchone()
    assert seconds is not None
    assert 0 < seconds[0] <= 60


async def test_another_applications_sweeps_are_left_alone(tables: psycopg.Connection, module_database_url: str) -> None:
    await lead_until_ticked(module_database_url, release("shop", same_name=timedelta(hours=1)), tables, ticks=1)
    tables.execute("UPDATE sweephand.sweep SET next_tick_at = now() - interval '1 day', run_requested_at = now()")

    await lead_until_ticked(module_database_url, release("bank", same_name=timedelta(hours=2)), tables, ticks=2)

    assert registered(tables) == {("shop", "same_name"): ("every 3600 s", 1), ("bank", "same_name"): ("every 7200 s", 1)}
    overdue = tables.execute("SELECT count(*) FROM sweephand.sweep WHERE app = 'shop' AND run_requested_at IS NOT NULL")
    assert overdue.fetchone() == (1,)


async def test_without_run_on_start_the_first_tick_is_a_whole_period_away(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    async def is_registered() -> bool:
        return bool(await asyncio.to_thread(registered, tables))

    gate = MessageGate(module_database_url)
    try:
        async with dispatching(gate.url, at_times_without_start()):
            await until_async(is_registered, message="the sweep is registered")
            await came_around(gate, times=3)
    finally:
        gate.close()

    assert stored_ticks(tables) == []
    row = tables.execute("SELECT next_tick_at - anchor_at FROM sweephand.sweep").fetchone()
    assert row == (timedelta(hours=1),)


async def test_an_idle_leader_asks_less_than_six_questions_a_second(tables: psycopg.Connection, module_database_url: str) -> None:
    await lead_until_ticked(module_database_url, hourly(), tables, ticks=1)
    gate = MessageGate(module_database_url)
    try:
        async with dispatching(gate.url, hourly(), poll_interval_seconds=1):
            await came_around(gate, times=2)  # what begins a term is over
            gate.statements()

            await came_around(gate, times=5)

            statements = gate.statements()
    finally:
        gate.close()
    assert statements < 30


async def came_around(gate: MessageGate, *, times: int) -> None:
    """Wait until the loop has read the sweeps' states this often."""
    for _ in range(times):
        hold = gate.hold("run_requested_at", application="sweephand dispatcher ticks")
        hold.release()
        await asyncio.to_thread(hold.wait)
