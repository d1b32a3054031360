"""Equal jobs stay duplicates for a while after one has completed, whichever way they come."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import LiteralString

import psycopg
import pytest
from sqlalchemy import Integer, Select, column, select, values

from sweephand import App, AppError, EnqueueOutcome, Job, enqueue, enqueue_many
from sweephand.postgres.connect import connect_async
from sweephand.postgres.retention import retention
from tests.engine.ticking import leading
from tests.support.jobs import open_connection, stored_jobs

app = App("cool")


@app.job(cool_down=timedelta(hours=1))
def mend(product_id: int) -> None:
    """Mend a product, at most once in an hour."""


@app.job()
def mend_at_any_time(product_id: int) -> None:
    """Mend a product, again as soon as it is done."""


@app.sweep(every=timedelta(minutes=1), enqueues=mend)
def stuck() -> Select[tuple[int]]:
    rows = values(column("product_id", Integer), name="stuck").data([(7,)])
    return select(rows.c.product_id).order_by(rows.c.product_id)


Enqueue = Callable[[str], int]


def by_enqueue(database_url: str) -> int:
    with open_connection(database_url) as connection, connection.transaction():
        return count([enqueue(connection, mend, product_id=7)])


def by_enqueue_many(database_url: str) -> int:
    with open_connection(database_url) as connection, connection.transaction():
        return count(enqueue_many(connection, mend, [{"product_id": 7}]))


def by_sweep(database_url: str) -> int:
    with leading(database_url, app) as ticker:
        report = ticker.tick("stuck")
    assert report.enqueued + report.skipped_duplicates == 1
    return report.enqueued


def count(outcomes: list[EnqueueOutcome]) -> int:
    return sum(not outcome.is_duplicate for outcome in outcomes)


WAYS = pytest.mark.parametrize("enqueue_again", [by_enqueue, by_enqueue_many, by_sweep])


def finish_all(conn: psycopg.Connection, state: LiteralString, *, minutes_ago: int) -> None:
    conn.execute("UPDATE sweephand.job SET state = %s, finished_at = now() - make_interval(mins => %s)", (state, minutes_ago))


@WAYS
def test_while_it_cools_down_a_completed_job_makes_equal_ones_duplicates(
    conn: psycopg.Connection, database_url: str, enqueue_again: Enqueue
) -> None:
    by_enqueue(database_url)
    finish_all(conn, "completed", minutes_ago=59)

    assert enqueue_again(database_url) == 0


@WAYS
def test_after_the_cool_down_an_equal_job_is_new(conn: psycopg.Connection, database_url: str, enqueue_again: Enqueue) -> None:
    by_enqueue(database_url)
    finish_all(conn, "completed", minutes_ago=61)

    assert enqueue_again(database_url) == 1


@WAYS
@pytest.mark.parametrize("state", ["discarded", "cancelled"])
def test_only_a_completed_job_cools_down(
    conn: psycopg.Connection, database_url: str, enqueue_again: Enqueue, state: LiteralString
) -> None:
    by_enqueue(database_url)
    finish_all(conn, state, minutes_ago=1)

    assert enqueue_again(database_url) == 1


@WAYS
def test_what_a_sweep_enqueued_cools_down_too(conn: psycopg.Connection, database_url: str, enqueue_again: Enqueue) -> None:
    by_sweep(database_url)
    finish_all(conn, "completed", minutes_ago=59)

    assert enqueue_again(database_url) == 0


def test_the_answer_names_the_completed_job(conn: psycopg.Connection, database_url: str) -> None:
    by_enqueue(database_url)
    finish_all(conn, "completed", minutes_ago=59)
    (first,) = stored_jobs(conn)

    with conn.transaction():
        one = enqueue(conn, mend, product_id=7)
        listed = enqueue_many(conn, mend, [{"product_id": 8}, {"product_id": 7}, {"product_id": 8}])

    assert one == EnqueueOutcome(first.id, is_duplicate=True)
    assert [outcome.is_duplicate for outcome in listed] == [False, True, True]
    assert listed[1].job_id == first.id
    assert listed[2].job_id == listed[0].job_id


def test_an_unfinished_job_beside_one_that_cools_down_is_answered_once(conn: psycopg.Connection) -> None:
    with conn.transaction():
        first = enqueue(conn, mend, product_id=7)
    finish_all(conn, "completed", minutes_ago=61)
    with conn.transaction():
        second = enqueue(conn, mend, product_id=7)
    conn.execute("UPDATE sweephand.job SET finished_at = now() WHERE id = %s", [first.job_id])

    with conn.transaction():
        outcomes = enqueue_many(conn, mend, [{"product_id": 7}, {"product_id": 8}])

    assert outcomes[0].is_duplicate
    assert outcomes[0].job_id in {first.job_id, second.job_id}
    assert not outcomes[1].is_duplicate


def test_of_many_that_enqueue_at_once_after_the_cool_down_one_gets_a_new_job(conn: psycopg.Connection, database_url: str) -> None:
    by_enqueue(database_url)
    finish_all(conn, "completed", minutes_ago=61)
    start = Barrier(4)

    def enqueue_with_the_others() -> int:
        with open_connection(database_url) as own:
            start.wait(10)
            with own.transaction():
                return count([enqueue(own, mend, product_id=7)])

    with ThreadPoolExecutor(4) as pool:
        new = sum(future.result(30) for future in [pool.submit(enqueue_with_the_others) for _ in range(4)])

    assert new == 1


def test_without_a_cool_down_a_completed_job_is_no_obstacle(conn: psycopg.Connection) -> None:
    with conn.transaction():
        enqueue(conn, mend_at_any_time, product_id=7)
    finish_all(conn, "completed", minutes_ago=0)

    with conn.transaction():
        assert not enqueue(conn, mend_at_any_time, product_id=7).is_duplicate


async def test_retention_keeps_a_job_until_it_has_cooled_down(conn: psycopg.Connection, database_url: str) -> None:
    by_enqueue(database_url)

    async with await connect_async(database_url, application_name="test") as lane:
        deleted = []
        for minutes_ago in (59, 61):
            finish_all(conn, "completed", minutes_ago=minutes_ago)
            report = await retention(lane, completed_hours=0.1, cancelled_hours=1, discarded_hours=1, tick_days=1, audit_days=1)
            deleted.append(report.jobs)

    assert deleted == [0, 1]


@pytest.mark.parametrize("job", [mend, mend_at_any_time], ids=["with a cool-down", "without"])
def test_duplicates_are_looked_up_by_an_index(conn: psycopg.Connection, job: Job[...]) -> None:
    conn.execute(
        """
        INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, finished_at, cool_down_seconds,
            unique_key)
        SELECT 'mend', 'default', 'completed', '{}', 25, 600, now(), CASE WHEN n % 10 = 0 THEN 3600 END, sha256(n::text::bytea)
        FROM generate_series(1, 60000) n
        """
    )
    conn.execute("VACUUM ANALYZE sweephand.job")
    with conn.transaction():
        enqueue(conn, job, product_id=7)
    conn.execute("SELECT pg_stat_force_next_flush()")
    before = scans(conn)
    with conn.transaction():
        enqueue(conn, job, product_id=8)
        enqueue_many(conn, job, [{"product_id": product_id} for product_id in range(100)])
    conn.execute("SELECT pg_stat_force_next_flush()")

    assert scans(conn) == before


def scans(conn: psycopg.Connection) -> object:
    """Return how often the table of jobs was read as a whole."""
    row = conn.execute("SELECT seq_scan FROM pg_stat_user_tables WHERE relid = 'sweephand.job'::regclass").fetchone()
    return row and row[0]


@pytest.mark.parametrize("unique", ["until_start", None])
def test_a_cool_down_needs_the_key_to_be_held_to_the_end(unique: str | None) -> None:
    with pytest.raises(AppError, match="cool_down=1:00:00 with unique="):
        App("wrong").job(cool_down=timedelta(hours=1), unique=unique)(tidy)  # type: ignore[arg-type]  # the very values


def test_a_cool_down_is_positive() -> None:
    with pytest.raises(AppError, match="cool_down=0:00:00"):
        App("wrong").job(cool_down=timedelta(0))(tidy)


def tidy(product_id: int) -> None:
    """Be any job."""
