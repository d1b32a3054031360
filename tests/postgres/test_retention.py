from collections.abc import AsyncIterator

import psycopg
import pytest

from sweephand.postgres.connect import connect_async
from sweephand.postgres.retention import RetentionReport, retention
from tests.support.jobs import insert_job, insert_worker, open_connection, stored_jobs

_HOUR = 3600.0


@pytest.fixture
async def lane(database_url: str) -> AsyncIterator[psycopg.AsyncConnection]:
    connection = await connect_async(database_url, application_name="test")
    async with connection:
        yield connection


async def _retain(lane: psycopg.AsyncConnection, *, batch_size: int = 1000, max_batches: int = 100) -> RetentionReport:
    return await retention(
        lane,
        completed_hours=24,
        cancelled_hours=24,
        discarded_hours=168,
        tick_days=30,
        audit_days=365,
        batch_size=batch_size,
        max_batches=max_batches,
    )


@pytest.mark.parametrize(
    ("state", "hours", "is_kept"),
    [
        ("completed", 23, True),
        ("completed", 25, False),
        ("cancelled", 25, False),
        ("discarded", 25, True),
        ("discarded", 169, False),
    ],
)
async def test_finished_jobs_are_kept_as_long_as_their_state_says(
    database_url: str,
    lane: psycopg.AsyncConnection,
    state: str,
    hours: float,
    is_kept: bool,  # noqa: FBT001
) -> None:
    with open_connection(database_url) as conn:
        insert_job(conn, state=state, finished_ago_seconds=hours * _HOUR)

        report = await _retain(lane)

        assert len(stored_jobs(conn)) == is_kept
    assert report.jobs == (not is_kept)


async def test_a_kinds_own_time_wins_over_its_states(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        insert_job(conn, state="completed", finished_ago_seconds=61, retain_seconds=60)
        longer = insert_job(conn, state="completed", finished_ago_seconds=48 * _HOUR, retain_seconds=72 * _HOUR)

        await _retain(lane)

        assert [job.id for job in stored_jobs(conn)] == [longer]


async def test_unfinished_jobs_are_never_deleted(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        for state in ("available", "scheduled", "retryable"):
            insert_job(conn, state=state, in_seconds=-1000 * _HOUR, retain_seconds=1)

        report = await _retain(lane)

    assert report == RetentionReport(jobs=0, ticks=0, workers=0, is_complete=True)


async def test_attempts_go_with_their_job(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        old = insert_job(conn, state="completed", finished_ago_seconds=25 * _HOUR)
        young = insert_job(conn, state="completed", finished_ago_seconds=1)
        for job_id in (old, young):
            conn.execute(
                "INSERT INTO sweephand.job_attempt (job_id, attempt, started_at, ended_at, outcome)"
                " VALUES (%s, 1, now(), now(), 'completed')",
                (job_id,),
            )

        await _retain(lane)

        assert conn.execute("SELECT job_id FROM sweephand.job_attempt").fetchall() == [(young,)]


async def test_kept_jobs_between_old_ones_do_not_stop_the_walk(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        for number in range(30):
            state = "completed" if number % 3 == 0 else "discarded"
            insert_job(conn, state=state, finished_ago_seconds=30 * _HOUR + number)

        report = await _retain(lane, batch_size=2)

        assert {job.state for job in stored_jobs(conn)} == {"discarded"}
    assert (report.jobs, report.is_complete) == (10, True)


async def test_a_run_is_bounded_and_says_that_more_is_due(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        for _ in range(5):
            insert_job(conn, state="completed", finished_ago_seconds=25 * _HOUR)

    first = await _retain(lane, batch_size=2, max_batches=2)
    second = await _retain(lane, batch_size=2, max_batches=2)

    assert (first.jobs, first.is_complete) == (4, False)
    assert (second.jobs, second.is_complete) == (1, True)


async def test_a_row_that_somebody_holds_is_passed_over_and_not_waited_for(
    database_url: str, lane: psycopg.AsyncConnection
) -> None:
    with open_connection(database_url) as conn:
        held = insert_job(conn, state="completed", finished_ago_seconds=25 * _HOUR)
        insert_job(conn, state="completed", finished_ago_seconds=25 * _HOUR)
        with conn.transaction():
            conn.execute("SELECT FROM sweephand.job WHERE id = %s FOR UPDATE", (held,))
            report = await _retain(lane)

    assert report.jobs == 1


async def test_audit_entries_past_their_time_are_deleted_in_batches(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        conn.execute(
            """
            INSERT INTO sweephand.audit (at, actor, action, target)
            SELECT now() - make_interval(days => d), 'ada', 'job.retry', 'job ' || d FROM unnest(ARRAY[1, 364, 366, 400, 800]) d
            """
        )

        first = await _retain(lane, batch_size=2, max_batches=1)
        second = await _retain(lane, batch_size=2, max_batches=1)

        kept = conn.execute("SELECT target FROM sweephand.audit ORDER BY at DESC").fetchall()
    assert (first.audit_entries, first.is_complete) == (2, False)
    assert (second.audit_entries, second.is_complete) == (1, True)
    assert kept == [("job 1",), ("job 364",)]


async def test_ticks_and_workers_past_their_time_are_deleted(database_url: str, lane: psycopg.AsyncConnection) -> None:
    with open_connection(database_url) as conn:
        conn.execute(
            """
            INSERT INTO sweephand.tick (app, sweep, planned_at, reason, outcome, term, dispatcher)
            SELECT 'tidy', 's', now() - make_interval(days => d), 'tick', 'ok', 1, 'd' FROM unnest(ARRAY[1, 29, 31, 40]) d
            """
        )
        insert_worker(conn, silent_seconds=2 * _HOUR)
        insert_worker(conn)

        report = await _retain(lane)

        assert conn.execute("SELECT count(*) FROM sweephand.tick").fetchone() == (2,)
    assert (report.ticks, report.workers) == (2, 1)
