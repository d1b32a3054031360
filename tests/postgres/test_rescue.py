from collections.abc import AsyncIterator
from uuid import uuid4

import psycopg
import pytest

from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.claim import claim
from sweephand.postgres.connect import connect_async
from sweephand.postgres.finish import FinishedAttempt, finish
from sweephand.postgres.rescue import OVERTIME_SECONDS, rescue
from tests.support.jobs import insert_job, insert_jobs, insert_worker, open_connection, stored_attempts, stored_job


@pytest.fixture
async def lane(database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    connection = await connect_async(database_url, application_name="test")
    async with connection:
        yield connection


def _claim(conn: psycopg.Connection, worker_id: int, *, token: str | None = None, limit: int = 100) -> None:
    claim(conn, queue="default", kinds=["noop"], limit=limit, worker_id=worker_id, claim_token=token or str(uuid4()))


async def test_jobs_of_a_silent_worker_are_taken_back_and_the_lost_attempt_is_on_record(
    database_url: str, lane: psycopg.AsyncConnection
) -> None:
    with open_connection(database_url) as conn:
        job_id = insert_job(conn, attempt=1)
        _claim(conn, insert_worker(conn, "worker-a", silent_seconds=31))

        report = await rescue(lane, rescue_after_seconds=30)

        job = stored_job(conn, job_id)
        (attempt,) = stored_attempts(conn, job_id)
    assert [(rescued.job_id, rescued.state, rescued.queue) for rescued in report.jobs] == [(job_id, "retryable", "default")]
    assert (job.state, job.attempt, job.claim_token) == ("retryable", 2, None)
    assert 14 <= job.scheduled_in_seconds <= 18
    assert (attempt.attempt, attempt.outcome, attempt.worker_name) == (2, "lost", "worker-a")
    assert "has not been heard of since" in str(attempt.error)


async def test_jobs_of_a_worker_that_beats_are_left_alone(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        job_id = insert_job(conn)
        _claim(conn, insert_worker(conn, silent_seconds=29))

        report = await rescue(lane, rescue_after_seconds=30)

        assert report.jobs == ()
        assert stored_job(conn, job_id).state == "running"


async def test_jobs_of_a_worker_that_is_off_the_table_are_taken_back(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        job_id = insert_job(conn)
        _claim(conn, 12_345)

        await rescue(lane, rescue_after_seconds=30)

        assert stored_attempts(conn, job_id)[0].error == "the worker is gone"


async def test_an_attempt_far_past_its_time_limit_is_taken_back_though_the_worker_beats(
    database_url: str, lane: psycopg.AsyncConnection
) -> None:
    with open_connection(database_url) as conn:
        past, within = insert_job(conn, timeout_seconds=60), insert_job(conn, timeout_seconds=70)
        _claim(conn, insert_worker(conn))
        conn.execute("UPDATE sweephand.job SET claimed_at = now() - make_interval(secs => %s)", (60 + OVERTIME_SECONDS + 1,))

        await rescue(lane, rescue_after_seconds=30)

        assert (stored_job(conn, past).state, stored_job(conn, within).state) == ("retryable", "running")


async def test_the_last_attempt_that_is_lost_discards_the_job(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        job_id = insert_job(conn, attempt=2, max_attempts=3)
        _claim(conn, insert_worker(conn, silent_seconds=60))

        await rescue(lane, rescue_after_seconds=30)

        job = stored_job(conn, job_id)
    assert (job.state, job.attempt) == ("discarded", 3)
    assert job.finished_at is not None


async def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        job_id = insert_job(conn)
        _claim(conn, insert_worker(conn, silent_seconds=60))
        conn.execute("UPDATE sweephand.job SET cancel_requested_at = now()")

        await rescue(lane, rescue_after_seconds=30)

        assert stored_job(conn, job_id).state == "cancelled"


async def test_no_attempt_number_overflows_the_schedule(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        job_id = insert_job(conn, attempt=2**31 - 2, max_attempts=2**31 - 1)
        conn.execute("UPDATE sweephand.job SET attempt = %s", (2**31 - 3,))
        _claim(conn, insert_worker(conn, silent_seconds=60))

        await rescue(lane, rescue_after_seconds=30)

        assert 300 * 86_400 < stored_job(conn, job_id).scheduled_in_seconds < 500 * 86_400


async def test_what_the_silent_worker_finishes_after_the_rescue_is_stale(
    database_url: str, lane: psycopg.AsyncConnection
) -> None:
    token = str(uuid4())
    with open_connection(database_url) as conn:
        job_id = insert_job(conn)
        _claim(conn, insert_worker(conn, silent_seconds=60), token=token)
        await rescue(lane, rescue_after_seconds=30)

        stale = finish(
            conn,
            [FinishedAttempt(job_id, 1, token, AttemptOutcome.COMPLETED, 1.0, 2.0)],
            worker_name="worker-a",
            monotonic_now=3.0,
        )

        assert stale == [job_id]
        assert stored_job(conn, job_id).state == "retryable"


async def test_a_job_that_is_just_being_finished_is_not_overwritten(database_url: str, lane: psycopg.AsyncConnection) -> None:
    token = str(uuid4())
    with open_connection(database_url) as conn, open_connection(database_url) as other:
        job_id = insert_job(conn)
        _claim(conn, insert_worker(conn, silent_seconds=60), token=token)
        with other.transaction():
            ended = FinishedAttempt(job_id, 1, token, AttemptOutcome.COMPLETED, 1.0, 2.0)
            finish(other, [ended], worker_name="worker-a", monotonic_now=3.0)
            report = await rescue(lane, rescue_after_seconds=30)

        assert report.jobs == ()
        assert stored_job(conn, job_id).state == "completed"


async def test_a_rescue_is_bounded_and_says_that_more_wait(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        insert_jobs(conn, 5)
        _claim(conn, insert_worker(conn, silent_seconds=60))

    first = await rescue(lane, rescue_after_seconds=30, limit=3)
    second = await rescue(lane, rescue_after_seconds=30, limit=3)

    assert (len(first.jobs), first.is_complete) == (3, False)
    assert (len(second.jobs), second.is_complete) == (2, True)
