"""A queue's limit holds across all workers, and costs no job."""

from pathlib import Path

import psycopg

from sweephand.postgres.queues import limit_queue
from tests.lifecycle.conftest import StartWorker
from tests.support.jobs import count_by_state, insert_job
from tests.support.waiting import until

RUNNING = "SELECT count(*), count(DISTINCT worker_id) FROM sweephand.job WHERE state = 'running'"


def running(conn: psycopg.Connection) -> tuple[int, int]:
    row = conn.execute(RUNNING).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def test_two_workers_together_run_no_more_of_a_queue_than_its_limit(
    conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    limit_queue(conn, "narrow", concurrency_limit=5)
    gate = tmp_path / "gate"
    start_worker(), start_worker()
    for _ in range(12):
        insert_job(conn, "hold", queue="narrow", args={"gate": str(gate)})

    until(lambda: running(conn) == (5, 2), message="five jobs run, on both workers")
    # Jobs of another queue pass, and each lets both workers look for more.
    for n in range(20):
        insert_job(conn, args={"n": n})
    until(lambda: count_by_state(conn).get("completed") == 20, message="the other queue is empty")
    at_the_limit = running(conn)
    gate.touch()

    until(lambda: count_by_state(conn) == {"completed": 32}, message="all jobs are completed")
    assert at_the_limit == (5, 2)


def test_a_limit_that_is_raised_or_lifted_lets_more_jobs_run(
    conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    limit_queue(conn, "narrow", concurrency_limit=1)
    start_worker(), start_worker()
    for _ in range(8):
        insert_job(conn, "hold", queue="narrow", args={"gate": str(tmp_path / "gate")})

    until(lambda: running(conn)[0] == 1, message="one job runs")
    limit_queue(conn, "narrow", concurrency_limit=3)
    until(lambda: running(conn)[0] == 3, message="three jobs run")
    limit_queue(conn, "narrow", concurrency_limit=None)

    until(lambda: running(conn)[0] == 8, message="all jobs run")
    (tmp_path / "gate").touch()
    until(lambda: count_by_state(conn) == {"completed": 8}, message="all jobs are completed")
