"""What goes wrong with one sweep is on record, is over with the fault, and is nobody else's."""

import asyncio
from datetime import timedelta
from functools import partial
from urllib.request import urlopen

import psycopg
import pytest
from sqlalchemy import SelectBase, column, desc, func, select, table, text

from sweephand import App
from tests.engine.dispatching import change, dispatching, request_run
from tests.engine.ticking import StoredTick, stored_ticks
from tests.support.jobs import open_connection
from tests.support.waiting import until_async

SHORT = timedelta(milliseconds=300)


def two_sweeps() -> App:
    """Return an application with a sweep of `product` and one of `order_line`, both every second."""
    app = App("faults")

    @app.job()
    def mend(product_id: int) -> None:
        pass

    @app.job()
    def bill(order_id: int) -> None:
        pass

    products, orders = table("product", column("id")), table("order_line", column("id"))

    @app.sweep(every=timedelta(seconds=1), enqueues=mend, statement_timeout=SHORT)
    def broken_products() -> SelectBase:
        return select(products.c.id.label("product_id")).order_by(products.c.id)

    @app.sweep(every=timedelta(seconds=1), enqueues=bill, statement_timeout=SHORT)
    def unbilled_orders() -> SelectBase:
        return select(orders.c.id.label("order_id")).order_by(orders.c.id)

    return app


@pytest.fixture
def tables(connection: psycopg.Connection) -> psycopg.Connection:
    connection.execute("DELETE FROM sweephand.tick")
    connection.execute("DELETE FROM sweephand.sweep")
    connection.execute("DROP TABLE IF EXISTS order_line; CREATE TABLE order_line (id int)")
    connection.execute("INSERT INTO product VALUES (1)")
    connection.execute("INSERT INTO order_line VALUES (1)")
    return connection


async def wait_for(connection: psycopg.Connection, sweep: str, *, outcome: str, after: int = 0) -> StoredTick:
    """Return the sweep's first tick of this outcome whose id is larger than `after`."""

    async def found() -> StoredTick | None:
        ticks = await asyncio.to_thread(stored_ticks, connection)
        return next((tick for tick in ticks if (tick.sweep, tick.outcome) == (sweep, outcome) and tick.id > after), None)

    tick = await until_async(found, message=f"{sweep} has a tick that is {outcome}")
    assert tick is not None
    return tick


async def test_a_locked_job_table_makes_ticks_errors_and_the_next_are_fine(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    async with dispatching(module_database_url, two_sweeps()):
        await wait_for(tables, "unbilled_orders", outcome="ok")
        with open_connection(module_database_url) as rival, rival.transaction():
            await asyncio.to_thread(rival.execute, "LOCK TABLE sweephand.job")
            failed = [await wait_for(tables, sweep, outcome="error") for sweep in ("broken_products", "unbilled_orders")]
        healed = [await wait_for(tables, tick.sweep, outcome="ok", after=tick.id) for tick in failed]

    assert all(tick.error and "timeout" in tick.error for tick in failed)
    assert [tick.enqueued + tick.skipped_duplicates for tick in healed] == [1, 1]


async def test_a_locked_table_of_one_sweep_does_not_hold_the_other_up(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    async with dispatching(module_database_url, two_sweeps()):
        with open_connection(module_database_url) as rival, rival.transaction():
            await asyncio.to_thread(rival.execute, "LOCK TABLE product")
            failed = await wait_for(tables, "broken_products", outcome="error")
            meanwhile = await wait_for(tables, "unbilled_orders", outcome="ok", after=failed.id)
            await wait_for(tables, "broken_products", outcome="error", after=meanwhile.id)
        await wait_for(tables, "broken_products", outcome="ok", after=failed.id)


async def test_a_scan_slower_than_its_interval_runs_every_other_time(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    app = App("slow")

    @app.job()
    def mend(product_id: int) -> None:
        pass

    @app.sweep(every=timedelta(seconds=1), enqueues=mend, run_on_start=False)
    def slow_products() -> SelectBase:
        nap = text("(SELECT pg_sleep(1.2)::text) = ''")
        return select(column("id").label("product_id")).select_from(text("product")).where(nap).order_by(text("1"))

    async with dispatching(module_database_url, app):
        first = await wait_for(tables, "slow_products", outcome="skipped_overlap")
        await wait_for(tables, "slow_products", outcome="skipped_overlap", after=first.id)

    outcomes = [tick.outcome for tick in stored_ticks(tables)]
    assert outcomes[:4] == ["ok", "skipped_overlap", "ok", "skipped_overlap"]
    shortest = tables.execute("SELECT min(ended_at - started_at) >= '1.2 s' FROM sweephand.tick WHERE outcome = 'ok'")
    assert shortest.fetchone() == (True,)


async def test_a_table_that_is_not_there_is_told_in_the_ledger(tables: psycopg.Connection, module_database_url: str) -> None:
    tables.execute("DROP TABLE order_line")

    async with dispatching(module_database_url, two_sweeps()):
        failed = await wait_for(tables, "unbilled_orders", outcome="error")
        await wait_for(tables, "broken_products", outcome="ok", after=failed.id)

    assert failed.error is not None
    assert 'relation "order_line" does not exist' in failed.error


async def test_a_function_that_fails_at_a_tick_is_that_sweeps_error(tables: psycopg.Connection, module_database_url: str) -> None:
    app = two_sweeps()
    is_broken = False

    @app.sweep(every=timedelta(seconds=1), enqueues=app.jobs["mend"])
    def moody_products() -> SelectBase:
        if is_broken:
            raise LookupError("not today")
        return select(column("id").label("product_id")).select_from(text("product")).order_by("product_id")

    is_broken = True
    async with dispatching(module_database_url, app):
        failed = await wait_for(tables, "moody_products", outcome="error")
        await wait_for(tables, "broken_products", outcome="ok", after=failed.id)
        is_broken = False
        await wait_for(tables, "moody_products", outcome="ok", after=failed.id)

    assert failed.error == "sweep moody_products: its function failed: LookupError: not today"


async def test_a_select_that_changes_its_columns_is_that_sweeps_error(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    app = two_sweeps()
    label = "product_id"

    @app.sweep(every=timedelta(seconds=1), enqueues=app.jobs["mend"])
    def moody_products() -> SelectBase:
        return select(column("id").label(label)).select_from(text("product")).order_by(text("1"))

    label = "nonsense"
    async with dispatching(module_database_url, app):
        failed = await wait_for(tables, "moody_products", outcome="error")
        await wait_for(tables, "broken_products", outcome="ok", after=failed.id)

    assert failed.error == "sweep moody_products: the column nonsense is no parameter of mend"


async def test_a_request_for_a_moment_that_has_its_tick_is_put_aside(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    async with dispatching(module_database_url, two_sweeps()):
        await wait_for(tables, "broken_products", outcome="ok")
        await change(
            tables,
            """
            UPDATE sweephand.sweep SET run_requested_at = (SELECT min(planned_at) FROM sweephand.tick WHERE sweep = name)
            WHERE name = 'broken_products'""",
        )

        await until_async(lambda: is_put_aside(tables), message="the request is put aside")
        last = max(tick.id for tick in stored_ticks(tables))
        await wait_for(tables, "broken_products", outcome="ok", after=last)

    assert [tick.reason for tick in stored_ticks(tables)].count("manual") == 0


async def is_put_aside(connection: psycopg.Connection) -> bool:
    found = await asyncio.to_thread(connection.execute, "SELECT count(run_requested_at) FROM sweephand.sweep")
    return found.fetchone() == (0,)


async def test_a_paused_sweep_records_its_ticks_runs_on_request_and_goes_on(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    async with dispatching(module_database_url, two_sweeps()):
        await wait_for(tables, "broken_products", outcome="ok")
        await change(tables, "UPDATE sweephand.sweep SET paused_at = now() WHERE name = 'broken_products'")
        paused = await wait_for(tables, "broken_products", outcome="paused")
        await wait_for(tables, "unbilled_orders", outcome="ok", after=paused.id)
        await request_run(tables)
        manual = await wait_for(tables, "broken_products", outcome="ok", after=paused.id)
        await change(tables, "UPDATE sweephand.sweep SET paused_at = NULL")
        await wait_for(tables, "broken_products", outcome="ok", after=manual.id)

    assert manual.reason == "manual"
    assert paused.cause == "paused"


async def test_the_gauges_show_every_sweep_that_can_be_read_whatever_its_order(
    tables: psycopg.Connection, module_database_url: str
) -> None:
    app = App("gauges")
    tables.execute("DROP TABLE IF EXISTS dated; CREATE TABLE dated (id int, made_at timestamptz)")
    tables.execute("INSERT INTO dated SELECT n, now() - interval '1 hour' FROM generate_series(1, 3) AS n")
    dated = table("dated", column("id"), column("made_at"))
    product_id = dated.c.id.label("product_id")

    @app.job()
    def mend(product_id: int) -> None:
        pass

    orders: dict[str, SelectBase] = {
        "aged": select(product_id).order_by(dated.c.made_at.desc().nulls_last()),
        "counted": select(product_id).order_by(desc("product_id")),
        "missing": select(column("id").label("product_id")).select_from(text("nowhere")).order_by(text("1")),
        "ranked": select(product_id).order_by(func.row_number().over(order_by=dated.c.made_at)),
        "textual": select(product_id).order_by(text("made_at")),
    }
    for name in orders:
        app.sweep(every=timedelta(hours=1), enqueues=mend, name=name)(partial(orders.__getitem__, name))

    async with dispatching(module_database_url, app) as dispatcher:
        page = await until_async(lambda: shown(dispatcher.metrics_port, "textual"), message="it is shown")

    rows = [f'sweephand_sweep_backlog_rows{{sweep="{name}"}} 3.0' for name in ("aged", "counted", "ranked", "textual")]
    assert all(row in page for row in rows), page
    assert 'sweephand_sweep_backlog_age_seconds{sweep="aged"} 36' in page
    assert 'sweephand_sweep_backlog_age_seconds{sweep="counted"} 0.0' in page


async def shown(port: int, sweep: str) -> str:
    def read() -> str:
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
            page: bytes = response.read()
        return page.decode()

    page = await asyncio.to_thread(read)
    return page if f'_rows{{sweep="{sweep}"}} 3.0' in page else ""
