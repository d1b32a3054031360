"""SIGTERM, in all the situations in which it comes."""

import signal
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from sweephand.postgres.embedded import EmbeddedPostgres
from tests.support.freezing import frozen
from tests.support.jobs import (
    count_by_state,
    insert_job,
    insert_jobs,
    open_connection,
    stored_attempts,
    stored_job,
    stored_jobs,
)
from tests.support.processes import Commands
from tests.support.waiting import until
from tests.worker.conftest import StartWorker


def test_running_jobs_get_the_grace_and_unstarted_ones_go_back_at_once(
    conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    gate, never = tmp_path / "gate", tmp_path / "never"
    with conn.transaction():
        # Fast jobs first: only a worker that has just been fast claims ahead.
        insert_jobs(conn, 3_000)
        in_time = [insert_job(conn, "hold", args={"gate": str(gate)}) for _ in range(2)]
        too_long = [insert_job(conn, "hold", args={"gate": str(never)}) for _ in range(2)]
        unstarted = [insert_job(conn) for _ in range(8)]
    worker = start_worker(grace_seconds=6)
    until(
        lambda: count_by_state(conn) == {"completed": 3_000, "running": 12},
        message="4 jobs run and 8 are claimed ahead",
    )

    worker.kill(signal.SIGTERM)
    until(
        lambda: {stored_job(conn, job_id).state for job_id in unstarted} == {"available"},
        message="what was not started goes back at once",
    )
    assert count_by_state(conn)["running"] == 4
    gate.touch()
    exit_status = worker.wait()

    assert exit_status == 0
    assert [(job.state, job.attempt) for job in stored_jobs(conn, in_time)] == [("completed", 1)] * 2
    assert [(job.state, job.attempt) for job in stored_jobs(conn, too_long)] == [("available", 0)] * 2
    assert [(job.state, job.attempt) for job in stored_jobs(conn, unstarted)] == [("available", 0)] * 8
    assert [attempt.outcome for attempt in stored_attempts(conn, too_long[0])] == ["interrupted"]
    assert stored_attempts(conn, unstarted[0]) == []
    assert conn.execute("SELECT count(*) FROM sweephand.worker").fetchone() == (0,)


def test_jobs_claimed_ahead_behind_slow_ones_go_back_without_any_signal(
    conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    with conn.transaction():
        insert_jobs(conn, 3_000)
        for _ in range(4):
            insert_job(conn, "hold", args={"gate": str(tmp_path / "never")})
        behind = [insert_job(conn) for _ in range(8)]

    start_worker()

    until(
        lambda: count_by_state(conn) == {"completed": 3_000, "running": 4, "available": 8},
        message="what waits behind slow jobs goes back",
    )
    assert {job.attempt for job in stored_jobs(conn, behind)} == {0}


def test_an_idle_worker_ends_at_once(start_worker: StartWorker) -> None:
    worker = start_worker()
    started = time.monotonic()

    worker.kill(signal.SIGTERM)

    assert worker.wait() == 0
    assert time.monotonic() - started < 15


def test_a_second_signal_ends_the_grace(conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path) -> None:
    job_id = insert_job(conn, "hold", args={"gate": str(tmp_path / "never")})
    worker = start_worker(grace_seconds=300)
    until(lambda: stored_job(conn, job_id).state == "running", message="the job runs")

    worker.kill(signal.SIGTERM)
    worker.wait_for_log("worker_stopping")
    worker.kill(signal.SIGTERM)

    assert worker.wait() == 0
    job = stored_job(conn, job_id)
    assert (job.state, job.attempt) == ("available", 0)


def test_a_job_on_the_event_loop_is_interrupted_too(conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path) -> None:
    job_id = insert_job(conn, "hold_async", args={"gate": str(tmp_path / "never")})
    worker = start_worker(grace_seconds=0)
    until(lambda: stored_job(conn, job_id).state == "running", message="the job runs")

    worker.kill(signal.SIGTERM)

    assert worker.wait() == 0
    assert stored_job(conn, job_id).state == "available"


def test_a_job_that_hangs_in_c_is_handed_back_and_does_not_hold_up_the_exit(
    conn: psycopg.Connection, start_worker: StartWorker
) -> None:
    job_id = insert_job(conn, "hang", args={"seconds": 40})
    worker = start_worker(grace_seconds=0.5)
    until(lambda: stored_job(conn, job_id).state == "running", message="the job runs")
    started = time.monotonic()

    worker.kill(signal.SIGTERM)

    assert worker.wait() == 0
    assert time.monotonic() - started < 0.5 + 30
    job = stored_job(conn, job_id)
    assert (job.state, job.attempt) == ("available", 0)


@pytest.mark.parametrize("how", ["stop", "freeze"])
def test_the_exit_is_in_time_with_the_database_gone(
    own_postgres: EmbeddedPostgres, commands: Commands, tmp_path: Path, how: str
) -> None:
    from sweephand.postgres.migrate import migrate

    url = own_postgres.start()
    migrate(url)
    with open_connection(url) as conn:
        insert_job(conn, "hold", args={"gate": str(tmp_path / "never")})
    env = {"DATABASE_URL": url, "SWEEPHAND_GRACE_SECONDS": "1", "SWEEPHAND_WORKER_THREADS": "2"}
    worker = commands.start("worker", app="tests.worker.apps:app", env=env)
    worker.wait_for_log(": started")
    with ExitStack() as trouble:
        if how == "stop":
            own_postgres.stop()
        else:
            trouble.enter_context(frozen(url))
        started = time.monotonic()

        worker.kill(signal.SIGTERM)

        assert worker.wait() == 0
        assert time.monotonic() - started < 1 + 15
