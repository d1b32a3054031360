"""What one tick enqueues, passes over and refuses; after each, the ledger's counts and the jobs agree."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import SelectBase, column, func, select, table

from sweephand import App, enqueue
from sweephand.model.ticks import TickOutcome
from tests.engine.ticking import Ticker, leading, stored_args, stored_ticks

app = App("batches")
products = table("product", column("id"), column("created_at"))


@app.job()
def mend(product_id: int) -> None:
    pass


@app.job(unique=None)
def touch(product_id: int) -> None:
    pass


@app.sweep(every=timedelta(seconds=60), limit=100, enqueues=mend)
def broken_products() -> SelectBase:
    return select(products.c.id.label("product_id")).where(products.c.created_at <= func.now()).order_by(products.c.created_at)


@app.sweep(every=timedelta(seconds=60), limit=2, scan_bound=5, enqueues=mend)
def few_products() -> SelectBase:
    return broken_products.select()


@app.sweep(every=timedelta(seconds=60), limit=100, enqueues=touch)
def touched_products() -> SelectBase:
    return broken_products.select()


@pytest.fixture
def ticker(connection: psycopg.Connection, module_database_url: str) -> Iterator[Ticker]:
    connection.execute("DROP TABLE product; CREATE TABLE product (id float8, created_at timestamptz)")
    connection.execute("DELETE FROM sweephand.tick")
    with leading(module_database_url, app) as ticker:
        yield ticker


def insert(connection: psycopg.Connection, first: int, last: int, *, minutes: int) -> None:
    connection.execute(
        "INSERT INTO product SELECT n, now() - make_interval(mins => %s, secs => -n) FROM generate_series(%s::int, %s::int) AS n",
        (minutes, first, last),
    )


def product_ids(connection: psycopg.Connection) -> list[object]:
    return [args["product_id"] for args in stored_args(connection)]


def fail_all_jobs(connection: psycopg.Connection) -> None:
    connection.execute("UPDATE sweephand.job SET state = 'retryable', attempt = attempt + 1, scheduled_at = now() + '1 hour'")


def test_a_hundred_rows_whose_jobs_always_fail_do_not_hide_fifty_younger_ones(
    ticker: Ticker, connection: psycopg.Connection
) -> None:
    insert(connection, 1, 100, minutes=60)
    insert(connection, 101, 150, minutes=10)

    first = ticker.tick("broken_products")
    fail_all_jobs(connection)
    second = ticker.tick("broken_products")
    fail_all_jobs(connection)
    third = ticker.tick("broken_products")

    assert product_ids(connection) == list(range(1, 151))
    assert [report.enqueued for report in (first, second, third)] == [100, 50, 0]
    assert [report.skipped_duplicates for report in (first, second, third)] == [0, 100, 150]
    assert sum(tick.enqueued for tick in stored_ticks(connection)) == 150
    assert not third.scan_truncated


def test_a_row_that_its_job_did_not_mend_is_enqueued_again_once_the_job_is_finished(
    ticker: Ticker, connection: psycopg.Connection
) -> None:
    insert(connection, 1, 1, minutes=10)

    ticker.tick("broken_products")
    while_it_runs = ticker.tick("broken_products")
    connection.execute("UPDATE sweephand.job SET state = 'completed', finished_at = now()")
    afterwards = ticker.tick("broken_products")

    assert (while_it_runs.enqueued, while_it_runs.skipped_duplicates) == (0, 1)
    assert (afterwards.enqueued, afterwards.skipped_duplicates) == (1, 0)


def test_forty_duplicates_and_a_row_that_cannot_be_stored_cost_the_others_nothing(
    ticker: Ticker, connection: psycopg.Connection
) -> None:
    insert(connection, 1, 99, minutes=10)
    connection.execute("INSERT INTO product VALUES ('NaN', now() - interval '1 hour')")
    with connection.transaction():
        for product_id in range(20, 60):
            enqueue(connection, mend, product_id=product_id)

    report = ticker.tick("broken_products")

    assert (report.enqueued, report.skipped_duplicates, report.refused) == (59, 40, 1)
    assert report.error == 'product_id is no 64-bit integer: NaN in {"product_id": null}'
    [tick] = stored_ticks(connection)
    assert (tick.outcome, tick.enqueued, tick.skipped_duplicates, tick.refused) == ("ok", 59, 40, 1)
    assert len(product_ids(connection)) == 99


def test_a_batch_ends_at_its_limit_with_the_oldest_first(ticker: Ticker, connection: psycopg.Connection) -> None:
    insert(connection, 5, 7, minutes=10)
    insert(connection, 1, 4, minutes=60)

    reports = [ticker.tick("few_products") for _ in range(4)]

    assert product_ids(connection) == [1, 2, 3, 4, 5]
    assert [report.enqueued for report in reports] == [2, 2, 1, 0]
    assert [report.skipped_duplicates for report in reports] == [0, 2, 4, 5]
    assert [report.scan_truncated for report in reports] == [False, False, True, True]
    assert [tick.scan_truncated for tick in stored_ticks(connection)] == [False, False, True, True]


def test_equal_rows_of_one_batch_make_one_job_and_do_not_use_up_the_limit(ticker: Ticker, connection: psycopg.Connection) -> None:
    insert(connection, 1, 1, minutes=60)
    insert(connection, 1, 1, minutes=50)
    insert(connection, 1, 2, minutes=40)

    report = ticker.tick("few_products")

    assert (report.enqueued, report.skipped_duplicates) == (2, 2)
    assert product_ids(connection) == [1, 2]


def test_a_kind_that_is_not_unique_is_enqueued_at_each_tick(ticker: Ticker, connection: psycopg.Connection) -> None:
    insert(connection, 1, 3, minutes=10)

    reports = [ticker.tick("touched_products") for _ in range(2)]

    assert [report.enqueued for report in reports] == [3, 3]
    assert product_ids(connection) == [1, 2, 3, 1, 2, 3]


def test_a_tick_that_finds_nothing_is_on_record_as_empty(ticker: Ticker, connection: psycopg.Connection) -> None:
    report = ticker.tick("broken_products")

    assert report.outcome is TickOutcome.EMPTY
    assert [tick.outcome for tick in stored_ticks(connection)] == ["empty"]


def test_the_jobs_name_their_tick_and_carry_the_kinds_rules(ticker: Ticker, connection: psycopg.Connection) -> None:
    insert(connection, 1, 1, minutes=10)

    report = ticker.tick("broken_products")

    rows = connection.execute("SELECT tick_id, kind, queue, state, max_attempts, timeout_seconds FROM sweephand.job").fetchall()
    assert rows == [(report.tick_id, "mend", "default", "available", 25, 600.0)]


def test_the_workers_are_woken_once_by_a_tick_that_enqueued_and_not_by_another(
    ticker: Ticker, connection: psycopg.Connection
) -> None:
    insert(connection, 1, 3, minutes=10)
    connection.execute('LISTEN "sweephand.default"')
    connection.execute("LISTEN done")

    ticker.tick("broken_products")
    ticker.tick("broken_products")
    connection.execute("NOTIFY done")

    heard = [notification.channel for notification in connection.notifies(timeout=10, stop_after=2)]
    assert heard == ["sweephand.default", "done"]
