"""What a new leader finds missed is in the ledger to the last tick, and made up for as the policy says."""

import asyncio
from datetime import timedelta
from typing import Literal

import psycopg
import pytest
from sqlalchemy import SelectBase, column, select, table

from sweephand import App
from tests.engine.dispatching import dispatching
from tests.engine.ticking import leading, stored_ticks
from tests.support.waiting import until_async

products = table("product", column("id"))


def minutely(*, catch_up: Literal["none", "latest"] | int, run_on_start: bool = False) -> App:
    app = App("catch-up")

    @app.job()
    def mend(product_id: int) -> None:
        pass

    @app.sweep(every=timedelta(seconds=60), enqueues=mend, catch_up=catch_up, run_on_start=run_on_start)
    def broken_products() -> SelectBase:
        return select(products.c.id.label("product_id")).order_by(products.c.id)

    return app


@pytest.fixture
def tables(connection: psycopg.Connection) -> psycopg.Connection:
    for statement in ("DELETE FROM sweephand.tick", "DELETE FROM sweephand.sweep", "DELETE FROM sweephand.leader"):
        connection.execute(statement.encode())
    connection.execute("INSERT INTO product VALUES (1)")
    return connection


async def come_back(database_url: str, app: App, connection: psycopg.Connection, *, minutes: int) -> list[tuple[object, ...]]:
    """Let a leader find a sweep whose next tick was planned so long ago; return the ledger's sums once it has caught up."""
    await asyncio.to_thread(register, database_url, app)
    connection.execute(
        """UPDATE sweephand.sweep SET anchor_at = now() - make_interval(mins => %(minutes)s, secs => -30),
            next_tick_at = now() - make_interval(mins => %(minutes)s, secs => -30)""",
        {"minutes": minutes},
    )

    async def has_caught_up() -> bool:
        found = await asyncio.to_thread(connection.execute, "SELECT next_tick_at > now() FROM sweephand.sweep")
        return found.fetchone() == (True,)

    async with dispatching(database_url, app):
        await until_async(has_caught_up, message="it has caught up")
    return connection.execute("""
        SELECT outcome, reason, cause, count(*), sum(covers)::int, count(made_up_by) FROM sweephand.tick
        GROUP BY outcome, reason, cause ORDER BY 1, 2""").fetchall()


def register(database_url: str, app: App) -> None:
    with leading(database_url, app):
        pass


async def test_the_latest_of_five_hundred_runs_and_stands_for_the_others(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    sums = await come_back(module_database_url, minutely(catch_up="latest"), tables, minutes=500)

    assert sums == [("collapsed", "tick", "no_leader", 499, 499, 499), ("ok", "catch_up", "no_leader", 1, 1, 0)]
    ran = next(tick for tick in stored_ticks(tables) if tick.outcome == "ok")
    assert tables.execute("SELECT DISTINCT made_up_by FROM sweephand.tick WHERE outcome = 'collapsed'").fetchall() == [(ran.id,)]


async def test_a_leader_that_starts_makes_up_for_them_by_its_first_tick(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    app = minutely(catch_up="none", run_on_start=True)

    sums = await come_back(module_database_url, app, tables, minutes=4)

    assert sums == [("collapsed", "tick", "no_leader", 3, 3, 3), ("ok", "run_on_start", "no_leader", 1, 1, 0)]


async def test_without_catching_up_they_are_missed(tables: psycopg.Connection, module_database_url: str) -> None:
    sums = await come_back(module_database_url, minutely(catch_up="none"), tables, minutes=5)

    assert sums == [("missed", "tick", "no_leader", 5, 5, 0)]


async def test_the_latest_three_run_one_after_another(tables: psycopg.Connection, module_database_url: str) -> None:
    sums = await come_back(module_database_url, minutely(catch_up=3), tables, minutes=10)

    assert sums == [("collapsed", "tick", "no_leader", 7, 7, 7), ("ok", "catch_up", "no_leader", 3, 3, 0)]
    assert [tick.enqueued for tick in stored_ticks(tables) if tick.outcome == "ok"] == [1, 0, 0]


async def test_ten_days_of_minutes_share_a_row_beyond_the_first_thousand(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    sums = await come_back(module_database_url, minutely(catch_up="latest"), tables, minutes=14_400)

    assert sums == [("collapsed", "tick", "no_leader", 1_000, 14_399, 1_000), ("ok", "catch_up", "no_leader", 1, 1, 0)]


async def test_an_application_without_sweeps_is_led_all_the_same(tables: psycopg.Connection, module_database_url: str) -> None:
    async def term() -> object:
        return (await asyncio.to_thread(tables.execute, "SELECT term FROM sweephand.leader")).fetchone()

    async with dispatching(module_database_url, App("empty")) as dispatcher:
        await until_async(term, message="it leads")
        assert dispatcher.metrics_port > 0

    assert stored_ticks(tables) == []
