"""With a cool-down a completed job holds its unique key on for a while, for enqueues and sweeps alike."""

from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import SelectBase, column, select, table

from sweephand import App, EnqueueOutcome, enqueue, enqueue_many
from tests.engine.ticking import leading, stored_ticks

app = App("cool-down")
products = table("product", column("id"))


@app.job(cool_down=timedelta(minutes=10))
def mend(product_id: int) -> None:
    pass


@app.sweep(every=timedelta(seconds=60), enqueues=mend)
def broken_products() -> SelectBase:
    return select(products.c.id.label("product_id")).order_by(products.c.id)


def finish(connection: psycopg.Connection, *, state: str = "completed", minutes_ago: int = 0) -> None:
    connection.execute(
        "UPDATE sweephand.job SET state = %s, finished_at = now() - make_interval(mins => %s)", (state, minutes_ago)
    )


def test_a_completed_job_makes_an_equal_one_a_duplicate_until_the_cool_down_is_over(connection: psycopg.Connection) -> None:
    with connection.transaction():
        first = enqueue(connection, mend, product_id=7)
    finish(connection, minutes_ago=9)
    with connection.transaction():
        cooling = enqueue(connection, mend, product_id=7)
        [cooling_too, other] = enqueue_many(connection, mend, [{"product_id": 7}, {"product_id": 8}])
    finish(connection, minutes_ago=11)
    with connection.transaction():
        cooled = enqueue(connection, mend, product_id=7)

    assert cooling == cooling_too == EnqueueOutcome(first.job_id, is_duplicate=True)
    assert not other.is_duplicate
    assert not cooled.is_duplicate


@pytest.mark.parametrize("state", ["discarded", "cancelled"])
def test_a_job_that_did_not_complete_needs_no_cool_down(connection: psycopg.Connection, state: str) -> None:
    with connection.transaction():
        enqueue(connection, mend, product_id=7)
    finish(connection, state=state)

    with connection.transaction():
        again = enqueue(connection, mend, product_id=7)

    assert not again.is_duplicate


def test_a_sweep_passes_over_rows_that_cool_down(connection: psycopg.Connection, module_database_url: str) -> None:
    connection.execute("DELETE FROM sweephand.tick")
    connection.execute("INSERT INTO product VALUES (7), (8)")
    with connection.transaction():
        enqueue(connection, mend, product_id=7)
    finish(connection, minutes_ago=9)

    with leading(module_database_url, app) as ticker:
        ticker.tick("broken_products")
        finish(connection, minutes_ago=11)
        ticker.tick("broken_products")

    assert [(tick.enqueued, tick.skipped_duplicates) for tick in stored_ticks(connection)] == [(1, 1), (2, 0)]
