"""Many jobs in one statement: each item has its answer, in order, and the rules of one hold for all."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest

from sweephand import App, ArgumentsError, EnqueueOutcome, NoTransactionError, enqueue, enqueue_many
from tests.engine.callers import DRIVERS, mend
from tests.support.jobs import open_connection

app = App("many")


@app.job()
def note(text: str) -> None:
    pass


@app.job(unique=None)
def touch(product_id: int) -> None:
    pass


def product_ids(connection: psycopg.Connection) -> list[int]:
    rows = connection.execute("SELECT (args ->> 'product_id')::int FROM sweephand.job ORDER BY id").fetchall()
    return [int(product_id) for (product_id,) in rows]


@pytest.mark.parametrize("driver", DRIVERS)
def test_each_item_is_answered_in_the_callers_order(
    driver: str, connection: psycopg.Connection, module_database_url: str
) -> None:
    with connection.transaction():
        earlier = enqueue(connection, mend, product_id=2)

    with DRIVERS[driver](module_database_url, None) as caller, caller.transaction():
        outcomes = caller.enqueue_many(mend, [9, 2, 1, 9])

    nine, two, one, nine_again = outcomes
    assert [outcome.is_duplicate for outcome in outcomes] == [False, True, False, True]
    assert two.job_id == earlier.job_id
    assert nine_again == EnqueueOutcome(nine.job_id, is_duplicate=True)
    assert one.job_id > nine.job_id
    assert product_ids(connection) == [2, 9, 1]


@pytest.mark.parametrize("earlier", [[1], [3], [1, 2, 3], [2, 3]])
def test_items_that_have_a_job_already_are_answered_with_it_wherever_they_stand(
    earlier: list[int], connection: psycopg.Connection
) -> None:
    with connection.transaction():
        held = {number: enqueue(connection, mend, product_id=number).job_id for number in earlier}

    with connection.transaction():
        outcomes = enqueue_many(connection, mend, [{"product_id": number} for number in (1, 2, 3)])

    assert [outcome.is_duplicate for outcome in outcomes] == [number in held for number in (1, 2, 3)]
    assert {number: outcomes[number - 1].job_id for number in held} == held
    assert len({outcome.job_id for outcome in outcomes}) == 3


def test_equal_items_among_held_ones_are_duplicates_of_the_first_of_them(connection: psycopg.Connection) -> None:
    with connection.transaction():
        held = enqueue(connection, mend, product_id=5).job_id

    with connection.transaction():
        outcomes = enqueue_many(connection, mend, [{"product_id": number} for number in (7, 7, 5, 8, 7, 5)])

    seven, seven_again, five, eight, seven_at_last, five_again = outcomes
    assert (seven.is_duplicate, eight.is_duplicate) == (False, False)
    assert seven_again == seven_at_last == EnqueueOutcome(seven.job_id, is_duplicate=True)
    assert five == five_again == EnqueueOutcome(held, is_duplicate=True)
    assert product_ids(connection) == [5, 7, 8]


@pytest.mark.parametrize("count", [1, 300])
def test_items_that_need_not_be_unique_get_a_job_each_in_the_callers_order(count: int, connection: psycopg.Connection) -> None:
    with connection.transaction():
        outcomes = enqueue_many(connection, touch, [{"product_id": number % 7} for number in range(count)])

    assert not any(outcome.is_duplicate for outcome in outcomes)
    assert [outcome.job_id for outcome in outcomes] == sorted(outcome.job_id for outcome in outcomes)
    assert product_ids(connection) == [number % 7 for number in range(count)]


def test_a_rollback_takes_all_of_it_back(connection: psycopg.Connection) -> None:
    with connection.transaction(force_rollback=True):
        enqueue_many(connection, mend, [{"product_id": number} for number in range(1_000)])

    assert product_ids(connection) == []


def test_without_a_transaction_or_with_a_bad_item_nothing_is_added(connection: psycopg.Connection) -> None:
    with pytest.raises(NoTransactionError):
        enqueue_many(connection, mend, [{"product_id": 7}])
    with connection.transaction(), pytest.raises(ArgumentsError, match="item 1: product_id: Input should be a valid integer"):
        enqueue_many(connection, mend, [{"product_id": 7}, {"product_id": "8"}])
    with connection.transaction(), pytest.raises(ArgumentsError, match="10001 items at once; 10000 is the most"):
        enqueue_many(connection, mend, ({"product_id": number} for number in range(10_001)))

    assert product_ids(connection) == []


def test_more_arguments_than_fit_are_refused_with_their_size(connection: psycopg.Connection) -> None:
    text = "x" * 1_000_000

    with connection.transaction(), pytest.raises(ArgumentsError, match="101,001,111 characters of arguments at once"):
        enqueue_many(connection, note, [{"text": text}] * 101)


def test_nothing_is_asked_for_nothing(connection: psycopg.Connection) -> None:
    with connection.transaction():
        assert enqueue_many(connection, mend, []) == []


def test_two_callers_in_opposite_order_do_not_deadlock(connection: psycopg.Connection, module_database_url: str) -> None:
    barrier = Barrier(2)

    def run(numbers: range) -> list[EnqueueOutcome]:
        with open_connection(module_database_url) as caller:
            barrier.wait(10)
            with caller.transaction():
                return enqueue_many(caller, mend, [{"product_id": number} for number in numbers])

    with ThreadPoolExecutor(max_workers=2) as pool:
        up, down = pool.submit(run, range(500)), pool.submit(run, range(499, -1, -1))

    assert [outcome.job_id for outcome in up.result()] == [outcome.job_id for outcome in reversed(down.result())]
    assert sorted(product_ids(connection)) == list(range(500))
