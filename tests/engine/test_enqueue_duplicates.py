"""A duplicate is answered with the id of the unfinished job, also when that one commits at the very same time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import LiteralString

import psycopg
import pytest

from sweephand import ConflictError, EnqueueOutcome, enqueue
from tests.engine.callers import DRIVERS, mend
from tests.support.jobs import open_connection
from tests.support.waiting import until

BLOCKED: LiteralString = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield pool


def enqueue_with(driver: str, database_url: str, *, isolation: str | None = None, first: LiteralString = "") -> EnqueueOutcome:
    with DRIVERS[driver](database_url, isolation) as caller, caller.transaction():
        if first:
            caller.execute(first)
        return caller.enqueue(mend, 7)


def wait_until_one_is_blocked(connection: psycopg.Connection) -> None:
    until(lambda: connection.execute(BLOCKED).fetchone() == (1,), message="the second enqueue waits for the first")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_duplicate_that_commits_meanwhile_is_answered_with_its_id(
    driver: str, connection: psycopg.Connection, module_database_url: str, pool: ThreadPoolExecutor
) -> None:
    with open_connection(module_database_url) as rival, rival.transaction():
        first = enqueue(rival, mend, product_id=7)
        second = pool.submit(enqueue_with, driver, module_database_url)
        wait_until_one_is_blocked(connection)

    assert second.result(10) == EnqueueOutcome(first.job_id, is_duplicate=True)


@pytest.mark.parametrize("driver", ["psycopg", "AsyncSession on asyncpg"])
def test_a_duplicate_that_rolls_back_meanwhile_leaves_the_place_to_the_second(
    driver: str, connection: psycopg.Connection, module_database_url: str, pool: ThreadPoolExecutor
) -> None:
    with open_connection(module_database_url) as rival, rival.transaction(force_rollback=True):
        first = enqueue(rival, mend, product_id=7)
        second = pool.submit(enqueue_with, driver, module_database_url)
        wait_until_one_is_blocked(connection)

    assert not second.result(10).is_duplicate
    assert second.result().job_id != first.job_id


def test_of_many_at_once_one_makes_the_job_and_all_learn_its_id(
    connection: psycopg.Connection, module_database_url: str, pool: ThreadPoolExecutor
) -> None:
    count, rounds = 8, 10
    barrier = Barrier(count)

    def run() -> list[EnqueueOutcome]:
        found: list[EnqueueOutcome] = []
        with open_connection(module_database_url) as caller:
            for number in range(rounds):
                barrier.wait(10)
                with caller.transaction():
                    found.append(enqueue(caller, mend, product_id=number))
        return found

    outcomes = [future.result(30) for future in [pool.submit(run) for _ in range(count)]]

    for number in range(rounds):
        answers = [found[number] for found in outcomes]
        assert len({answer.job_id for answer in answers}) == 1
        assert sorted(answer.is_duplicate for answer in answers) == [False] + [True] * (count - 1)
    assert connection.execute("SELECT count(*) FROM sweephand.job").fetchone() == (rounds,)


@pytest.mark.parametrize("driver", DRIVERS)
def test_repeatable_read_sees_a_duplicate_of_before_its_snapshot(
    driver: str, connection: psycopg.Connection, module_database_url: str
) -> None:
    with connection.transaction():
        first = enqueue(connection, mend, product_id=7)

    second = enqueue_with(driver, module_database_url, first="SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    assert second == EnqueueOutcome(first.job_id, is_duplicate=True)


def test_repeatable_read_with_a_later_duplicate_fails_as_serialization_does_and_can_be_retried(
    connection: psycopg.Connection, module_database_url: str
) -> None:
    with open_connection(module_database_url) as caller:
        caller.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        caller.execute("INSERT INTO product VALUES (7)")
        with connection.transaction():
            first = enqueue(connection, mend, product_id=7)

        with pytest.raises(psycopg.errors.SerializationFailure):
            enqueue(caller, mend, product_id=7)
        caller.execute("ROLLBACK")
        with caller.transaction():
            again = enqueue(caller, mend, product_id=7)

    assert again == EnqueueOutcome(first.job_id, is_duplicate=True)
    assert connection.execute("SELECT count(*) FROM product").fetchone() == (0,)


def test_equal_jobs_that_come_and_go_are_reported_after_some_tries(connection: psycopg.Connection) -> None:
    # Nothing is inserted and nothing is found: what a race shows that is lost again and again.
    connection.execute("""
        CREATE FUNCTION vanish() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER vanish BEFORE INSERT ON sweephand.job FOR EACH ROW EXECUTE FUNCTION vanish()""")
    try:
        with connection.transaction(), pytest.raises(ConflictError, match="equal mend jobs kept coming and going"):
            enqueue(connection, mend, product_id=7)
    finally:
        connection.execute("DROP FUNCTION vanish CASCADE")
