"""A job that completes itself does so with its own writes, or not at all."""

import psycopg
import pytest

from sweephand import JobContext, NoTransactionError, StaleAttemptError
from sweephand.postgres.connect import connect_async
from sweephand.postgres.rescue import rescue
from tests.lifecycle.attempts import hold_job
from tests.support.jobs import insert_job, open_connection, stored_attempts, stored_job
from tests.support.transactions import CONNECTION_KINDS, Action, AnyConnection, ConnectionKind, in_transaction


def completion_of(job: JobContext) -> Action:
    def complete(connection: AnyConnection) -> object:
        return job.complete(connection)

    return complete


def fail(_connection: AnyConnection) -> None:
    raise LookupError


@pytest.mark.parametrize("kind", CONNECTION_KINDS)
async def test_the_callers_commit_completes_the_job_and_records_the_attempt(
    conn: psycopg.Connection, database_url: str, kind: ConnectionKind
) -> None:
    job_id = insert_job(conn)
    job = hold_job(conn)

    await in_transaction(kind, database_url, completion_of(job))

    stored = stored_job(conn, job_id)
    assert (stored.state, stored.attempt, stored.claim_token) == ("completed", 1, None)
    assert stored.finished_at is not None
    (attempt,) = stored_attempts(conn, job_id)
    assert (attempt.attempt, attempt.outcome, attempt.worker_name) == (1, "completed", "worker-a")
    assert 0 <= attempt.seconds < 10


@pytest.mark.parametrize("kind", CONNECTION_KINDS)
async def test_the_callers_rollback_leaves_the_job_running(
    conn: psycopg.Connection, database_url: str, kind: ConnectionKind
) -> None:
    job_id = insert_job(conn)
    job = hold_job(conn)

    with pytest.raises(LookupError):
        await in_transaction(kind, database_url, completion_of(job), fail)

    assert stored_job(conn, job_id).state == "running"
    assert stored_attempts(conn, job_id) == []


@pytest.mark.parametrize("kind", CONNECTION_KINDS)
async def test_a_job_that_was_rescued_meanwhile_cannot_complete_itself(
    conn: psycopg.Connection, database_url: str, kind: ConnectionKind
) -> None:
    job_id = insert_job(conn)
    job = hold_job(conn)
    await rescue_all(conn, database_url)

    with pytest.raises(StaleAttemptError, match=f"job {job_id} is no longer held by its attempt 1: "):
        await in_transaction(kind, database_url, completion_of(job))

    assert stored_job(conn, job_id).state == "retryable"
    assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["lost"]


async def test_the_writes_of_a_rescued_job_go_back_with_its_completion(conn: psycopg.Connection, database_url: str) -> None:
    conn.execute("CREATE TABLE effect (job_id bigint)")
    job_id = insert_job(conn)
    job = hold_job(conn)
    await rescue_all(conn, database_url)

    def work() -> None:
        with psycopg.connect(database_url) as own:
            own.execute("INSERT INTO effect VALUES (%s)", [job_id])
            job.complete(own)

    with pytest.raises(StaleAttemptError):
        work()

    assert conn.execute("SELECT * FROM effect").fetchall() == []


async def test_under_repeatable_read_a_job_that_was_taken_away_meanwhile_cannot_complete_itself(
    conn: psycopg.Connection, database_url: str
) -> None:
    job_id = insert_job(conn)
    job = hold_job(conn)

    with psycopg.connect(database_url) as own:
        own.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        own.execute("SELECT count(*) FROM sweephand.job")
        await rescue_all(conn, database_url)
        with pytest.raises(psycopg.errors.SerializationFailure):
            job.complete(own)

    assert stored_job(conn, job_id).state == "retryable"


async def test_the_rescue_does_not_wait_for_a_job_that_is_completing_itself(conn: psycopg.Connection, database_url: str) -> None:
    job_id = insert_job(conn)
    job = hold_job(conn)

    with open_connection(database_url) as own, own.transaction():
        job.complete(own)
        await rescue_all(conn, database_url)

    assert stored_job(conn, job_id).state == "completed"


def test_a_second_completion_is_stale(conn: psycopg.Connection) -> None:
    insert_job(conn)
    job = hold_job(conn)
    with conn.transaction():
        job.complete(conn)

    with pytest.raises(StaleAttemptError), conn.transaction():
        job.complete(conn)


def test_a_completion_goes_back_with_its_savepoint(conn: psycopg.Connection) -> None:
    job_id = insert_job(conn)
    job = hold_job(conn)

    with conn.transaction(), conn.transaction(force_rollback=True):
        job.complete(conn)

    assert stored_job(conn, job_id).state == "running"


def test_without_an_open_transaction_it_is_refused(conn: psycopg.Connection) -> None:
    job_id = insert_job(conn)
    job = hold_job(conn)

    with pytest.raises(NoTransactionError):
        job.complete(conn)

    assert stored_job(conn, job_id).state == "running"


def test_a_cancellation_that_came_meanwhile_loses_against_the_completion(conn: psycopg.Connection) -> None:
    job_id = insert_job(conn)
    job = hold_job(conn)
    conn.execute("UPDATE sweephand.job SET cancel_requested_at = now() WHERE id = %s", [job_id])

    with conn.transaction():
        job.complete(conn)

    assert stored_job(conn, job_id).state == "completed"


async def rescue_all(conn: psycopg.Connection, database_url: str) -> None:
    """Take the jobs of all workers away, as after a long silence."""
    conn.execute("UPDATE sweephand.worker SET heartbeat_at = now() - interval '1 hour'")
    async with await connect_async(database_url, application_name="test") as lane:
        await rescue(lane, rescue_after_seconds=30)
