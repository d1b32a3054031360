"""A job that is unique until its start gives its key away for good when it is claimed; coming back, it waits for nobody."""

from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from sweephand import App, enqueue
from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.claim import ClaimedJob, HeldAttempt, claim, release
from sweephand.postgres.connect import connect_async
from sweephand.postgres.finish import FinishedAttempt, finish
from sweephand.postgres.rescue import rescue
from tests.support.jobs import insert_worker, open_connection, stored_job

app = App("until_start")


@app.job(unique="until_start")
def reindex(product_id: int) -> None:
    pass


def _claim(connection: psycopg.Connection, *, worker_id: int) -> tuple[ClaimedJob, HeldAttempt]:
    token = str(uuid4())
    (claimed,) = claim(connection, queue="default", kinds=["reindex"], limit=1, worker_id=worker_id, claim_token=token)
    return claimed, HeldAttempt(claimed.job_id, claimed.attempt, token)


def _finish(connection: psycopg.Connection, held: HeldAttempt, outcome: AttemptOutcome) -> list[int]:
    delay = 0.0 if outcome in {AttemptOutcome.RETRIED, AttemptOutcome.SNOOZED} else None
    attempt = FinishedAttempt(*held, outcome=outcome, started=0, ended=1, delay_seconds=delay)
    return finish(connection, [attempt], worker_name="w", monotonic_now=1)


def _retried(connection: psycopg.Connection, held: HeldAttempt) -> None:
    assert _finish(connection, held, AttemptOutcome.RETRIED) == []


def _snoozed(connection: psycopg.Connection, held: HeldAttempt) -> None:
    assert _finish(connection, held, AttemptOutcome.SNOOZED) == []


def _interrupted(connection: psycopg.Connection, held: HeldAttempt) -> None:
    assert _finish(connection, held, AttemptOutcome.INTERRUPTED) == []


def _given_back(connection: psycopg.Connection, held: HeldAttempt) -> None:
    assert release(connection, [held]) == 1


@pytest.mark.parametrize("come_back", [_retried, _snoozed, _interrupted, _given_back])
def test_a_job_that_comes_back_leaves_its_key_to_the_one_enqueued_meanwhile_and_both_run(
    come_back: Callable[[psycopg.Connection, HeldAttempt], None], database_url: str
) -> None:
    with open_connection(database_url) as connection, open_connection(database_url) as other:
        worker_id = insert_worker(connection)
        with connection.transaction():
            first = enqueue(connection, reindex, product_id=7)
        _, held = _claim(connection, worker_id=worker_id)

        with other.transaction():  # open while the first comes back, which must not wait for it
            second = enqueue(other, reindex, product_id=7)
            come_back(connection, held)
        with connection.transaction():
            third = enqueue(connection, reindex, product_id=7)
        runs = [_claim(connection, worker_id=worker_id) for _ in range(2)]

        assert (second.is_duplicate, third.is_duplicate, third.job_id) == (False, True, second.job_id)
        assert {job.job_id for job, _ in runs} == {first.job_id, second.job_id}
        assert [_finish(connection, again, AttemptOutcome.COMPLETED) for _, again in runs] == [[], []]


def test_a_job_that_came_back_holds_no_key_even_if_nothing_took_its_place(database_url: str) -> None:
    with open_connection(database_url) as connection:
        with connection.transaction():
            first = enqueue(connection, reindex, product_id=7)
        _, held = _claim(connection, worker_id=insert_worker(connection))
        _retried(connection, held)

        with connection.transaction():
            second = enqueue(connection, reindex, product_id=7)

        assert (second.is_duplicate, stored_job(connection, first.job_id).has_key) == (False, False)


async def test_a_rescued_job_leaves_its_key_too(database_url: str) -> None:
    with open_connection(database_url) as connection:
        with connection.transaction():
            enqueue(connection, reindex, product_id=7)
        _claim(connection, worker_id=insert_worker(connection, silent_seconds=3600))
        with connection.transaction():
            second = enqueue(connection, reindex, product_id=7)

        async with await connect_async(database_url, application_name="test") as lane:
            report = await rescue(lane, rescue_after_seconds=30, limit=10)

        assert [job.state for job in report.jobs] == ["retryable"]
        assert (second.is_duplicate, stored_job(connection, second.job_id).has_key) == (False, True)
