"""A sweep runs inside of a test's transaction, on rows that nobody else sees."""

from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import Integer, Select, column, select, values

from sweephand import ArgumentsError, enqueue
from sweephand.testing import drain, enqueued, run_sweep, sweep_rows
from tests.support.jobs import insert_job
from tests.testing.shop import open_shop


def test_the_rows_are_the_jobs_arguments_in_the_sweeps_order(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    conn.execute("INSERT INTO product VALUES (9, false), (8, true), (7, false)")

    assert sweep_rows(conn, shop.unpublished) == [{"product_id": 7}, {"product_id": 9}]


def test_a_tick_enqueues_what_has_no_job_up_to_its_limit(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    conn.execute("INSERT INTO product (id) SELECT generate_series(1, 5)")
    enqueue(conn, shop.publish, product_id=1)

    tick = run_sweep(conn, shop.unpublished)
    again = run_sweep(conn, shop.unpublished)

    assert (tick.enqueued, tick.skipped_duplicates, tick.refusals) == (2, 1, ())
    assert (again.enqueued, again.skipped_duplicates) == (2, 3)
    assert [row["product_id"] for row in enqueued(conn, shop.publish)] == [1, 2, 3, 4, 5]


def test_sweeping_and_draining_mends_every_row(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    conn.execute("INSERT INTO product (id) SELECT generate_series(1, 5)")

    while run_sweep(conn, shop.unpublished).enqueued:
        drain(conn, shop.app)

    assert conn.execute("SELECT count(*) FROM product WHERE NOT is_published").fetchone() == (0,)
    assert len(shop.done) == 5


def test_a_row_that_does_not_fit_is_refused_with_its_reason(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)

    def broken() -> Select[tuple[int]]:
        rows = values(column("product_id", Integer), name="rows").data([(7,), (None,)])
        return select(rows.c.product_id).order_by(rows.c.product_id)

    sweep = shop.app.sweep(every=timedelta(minutes=1), enqueues=shop.publish)(broken)

    tick = run_sweep(conn, sweep)

    assert tick.enqueued == 1
    assert tick.refusals == ('product_id is null in {"product_id": null}',)
    with pytest.raises(ArgumentsError, match="sweep broken: product_id is null"):
        sweep_rows(conn, sweep)


def test_the_same_as_a_tick_in_the_presence_of_finished_jobs(conn: psycopg.Connection) -> None:
    shop = open_shop(conn)
    conn.execute("INSERT INTO product VALUES (7)")
    insert_job(conn, "publish", args={"product_id": 7}, state="completed", finished_ago_seconds=1)

    assert run_sweep(conn, shop.unpublished).enqueued == 1
