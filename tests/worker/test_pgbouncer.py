"""Workers behind PgBouncer in transaction mode, where nothing may live in the session."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sweephand.postgres.queues import limit_queue
from tests.support.databases import is_listened_to
from tests.support.jobs import count_by_state, insert_job, insert_jobs, stored_attempts, stored_job
from tests.support.pgbouncer import PGBOUNCER, transaction_pooler
from tests.support.waiting import until
from tests.worker.conftest import StartWorker

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    with transaction_pooler(database_url) as url:
        yield url


def test_jobs_are_claimed_run_finished_and_retried(conn: psycopg.Connection, start_worker: StartWorker, pooled_url: str) -> None:
    insert_jobs(conn, 500)
    failing = insert_job(conn, "fail", args={"message": "no stock"}, attempt=2)

    start_worker(database_url=pooled_url, prepared_statements=False, listen=False)

    until(lambda: count_by_state(conn) == {"completed": 500, "retryable": 1}, message="all jobs have run")
    assert stored_attempts(conn, failing)[0].error == "ValueError: no stock"


def test_a_queues_limit_holds(conn: psycopg.Connection, start_worker: StartWorker, pooled_url: str, tmp_path: Path) -> None:
    limit_queue(conn, "default", concurrency_limit=2)
    gate = tmp_path / "gate"
    for _ in range(4):
        insert_job(conn, "hold", args={"gate": str(gate)})

    start_worker(database_url=pooled_url, prepared_statements=False, listen=False)

    until(lambda: count_by_state(conn) == {"running": 2, "available": 2}, message="two jobs run")
    gate.touch()
    until(lambda: count_by_state(conn) == {"completed": 4}, message="all jobs are completed")


def test_a_listener_on_a_direct_connection_wakes_the_worker(
    database_url: str, conn: psycopg.Connection, start_worker: StartWorker, pooled_url: str
) -> None:
    worker = start_worker(
        database_url=pooled_url,
        prepared_statements=False,
        listen_database_url=database_url,
        poll_interval_seconds=600,
    )
    until(lambda: is_listened_to(conn), message="the worker listens")
    job_id = insert_job(conn)

    conn.execute("SELECT pg_notify('sweephand.default', '')")

    until(lambda: stored_job(conn, job_id).state == "completed", message="the job is completed")
    worker.kill(signal.SIGTERM)
    assert worker.wait() == 0
