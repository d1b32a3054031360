"""Workers and databases that die, hang and come back."""

import signal
from pathlib import Path

import psycopg
import pytest

from sweephand.postgres.connect import connect_async
from sweephand.postgres.embedded import EmbeddedPostgres
from sweephand.postgres.rescue import RescueReport, rescue
from tests.support.databases import is_listened_to, sever_connections
from tests.support.freezing import frozen
from tests.support.jobs import (
    count_by_state,
    insert_job,
    insert_jobs,
    open_connection,
    stored_attempts,
    stored_job,
)
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until, until_async
from tests.worker.conftest import StartWorker

_RESCUE_AFTER_SECONDS = 2.0


async def _rescue_until_something_is_found(database_url: str) -> RescueReport:
    connection = await connect_async(database_url, application_name="test")
    async with connection:

        async def look() -> RescueReport | None:
            report = await rescue(connection, rescue_after_seconds=_RESCUE_AFTER_SECONDS)
            return report if report.jobs else None

        report = await until_async(look, message="jobs of a dead worker are found")
    assert report is not None
    return report


async def test_what_a_killed_worker_ran_and_held_is_finished_by_another(
    database_url: str, conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with conn.transaction():
        insert_jobs(conn, 3_000)
        running = [insert_job(conn, "hold", args={"gate": str(gate)}) for _ in range(4)]
        for _ in range(8):
            insert_job(conn)
    first = start_worker()
    until(
        lambda: count_by_state(conn) == {"completed": 3_000, "running": 12},
        message="4 jobs run and 8 are claimed ahead",
    )
    first.kill(signal.SIGKILL)
    first.wait()
    gate.touch()

    report = await _rescue_until_something_is_found(database_url)
    start_worker()

    until(lambda: count_by_state(conn) == {"completed": 3_012}, message="all jobs are completed")
    # Those claimed ahead go back by themselves after a second, so on a slow machine they may have gone already.
    assert {job.job_id for job in report.jobs} >= set(running)
    assert {job.state for job in report.jobs} == {"retryable"}
    assert [attempt.outcome for attempt in stored_attempts(conn, running[0])] == ["lost", "completed"]


async def test_a_job_that_kills_its_worker_every_time_is_discarded_after_its_attempts(
    database_url: str, conn: psycopg.Connection, start_worker: StartWorker
) -> None:
    job_id = insert_job(conn, "kill_worker", max_attempts=2)

    for _ in range(2):
        worker = start_worker()
        assert worker.wait() == -signal.SIGKILL
        await _rescue_until_something_is_found(database_url)
        conn.execute("UPDATE sweephand.job SET scheduled_at = now() WHERE state = 'retryable'")

    job = stored_job(conn, job_id)
    assert (job.state, job.attempt) == ("discarded", 2)
    assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["lost", "lost"]


async def test_a_worker_that_was_frozen_and_rescued_changes_nothing_when_it_wakes(
    database_url: str, conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    job_id = insert_job(conn, "hold", args={"gate": str(gate)})
    worker = start_worker()
    until(lambda: stored_job(conn, job_id).state == "running", message="the job runs")
    worker.kill(signal.SIGSTOP)
    await _rescue_until_something_is_found(database_url)
    rescued = stored_job(conn, job_id)

    gate.touch()
    worker.kill(signal.SIGCONT)
    worker.wait_for_log("stale_finishes")

    assert (stored_job(conn, job_id).state, stored_job(conn, job_id).attempt) == (rescued.state, rescued.attempt)
    assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["lost"]


def test_a_worker_that_was_taken_off_the_table_registers_anew(conn: psycopg.Connection, start_worker: StartWorker) -> None:
    worker = start_worker()
    conn.execute("DELETE FROM sweephand.worker")

    worker.wait_for_log("worker_was_given_up")
    job_id = insert_job(conn)

    until(lambda: stored_job(conn, job_id).state == "completed", message="the worker works on")
    assert conn.execute("SELECT id FROM sweephand.worker").fetchone() == (stored_job(conn, job_id).worker_id,)


def test_cut_connections_cost_nothing_but_a_moment(
    database_url: str, conn: psycopg.Connection, start_worker: StartWorker
) -> None:
    worker = start_worker()
    until(lambda: is_listened_to(conn), message="the worker has all its connections")
    conn.close()
    sever_connections(database_url)
    with open_connection(database_url) as fresh:
        job_id = insert_job(fresh)

        until(lambda: stored_job(fresh, job_id).state == "completed", message="the job is completed")
    worker.wait_for_log("listener_reconnected")


@pytest.mark.parametrize("listen", [True, False])
def test_without_a_notification_a_job_starts_within_the_poll_interval(
    conn: psycopg.Connection,
    start_worker: StartWorker,
    listen: bool,  # noqa: FBT001
) -> None:
    start_worker(listen=listen)

    job_id = insert_job(conn)

    until(lambda: stored_job(conn, job_id).state == "completed", message="the job is found by polling")


def test_a_notification_starts_a_job_long_before_the_next_poll(conn: psycopg.Connection, start_worker: StartWorker) -> None:
    worker = start_worker(poll_interval_seconds=600)
    until(lambda: "listener" in _applications(conn), message="the worker listens")
    warm_up = insert_job(conn)
    conn.execute("SELECT pg_notify('sweephand.default', '')")
    until(lambda: stored_job(conn, warm_up).state == "completed", message="the first job is completed")

    job_id = insert_job(conn)
    conn.execute("SELECT pg_notify('sweephand.default', '')")

    until(lambda: stored_job(conn, job_id).state == "completed", message="the job is completed")
    assert worker.is_running()


def _applications(conn: psycopg.Connection) -> str:
    rows = conn.execute(
        "SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    ).fetchall()
    return " ".join(str(name) for (name,) in rows)


def _start_on_own_server(url: str, commands: Commands) -> RunningCommand:
    from sweephand.postgres.migrate import migrate

    migrate(url)
    env = {
        "DATABASE_URL": url,
        "SWEEPHAND_WORKER_THREADS": "2",
        "SWEEPHAND_HEARTBEAT_SECONDS": "0.3",
        "SWEEPHAND_RESCUE_AFTER_SECONDS": "2",
        "SWEEPHAND_POLL_INTERVAL_SECONDS": "0.5",
    }
    worker = commands.start("worker", app="tests.worker.apps:app", env=env)
    worker.wait_for_log("worker_started")
    return worker


def test_what_ended_while_postgresql_was_down_is_written_when_it_is_back(
    own_postgres: EmbeddedPostgres, commands: Commands, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    url = own_postgres.start()
    _start_on_own_server(url, commands)
    with open_connection(url) as conn:
        job_id = insert_job(conn, "hold", args={"gate": str(gate)})
        until(lambda: stored_job(conn, job_id).state == "running", message="the job runs")
    own_postgres.stop(is_crash=True)
    gate.touch()
    own_postgres.start()

    with open_connection(url) as conn:
        until(lambda: stored_job(conn, job_id).state == "completed", message="the end is written")
        later = insert_job(conn)
        until(lambda: stored_job(conn, later).state == "completed", message="work goes on")
        assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["completed"]


def test_a_server_that_does_not_answer_for_a_while_costs_no_job(
    own_postgres: EmbeddedPostgres, commands: Commands, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    url = own_postgres.start()
    worker = _start_on_own_server(url, commands)
    with open_connection(url) as conn:
        job_id = insert_job(conn, "hold", args={"gate": str(gate)})
        until(lambda: stored_job(conn, job_id).state == "running", message="the job runs")

        with frozen(url):
            gate.touch()
            worker.wait_for_log(": completed")

        until(lambda: stored_job(conn, job_id).state == "completed", message="the end is written")


def test_a_read_only_phase_is_survived_without_a_restart(own_postgres: EmbeddedPostgres, commands: Commands) -> None:
    url = own_postgres.start()
    worker = _start_on_own_server(url, commands)
    with open_connection(url) as conn:
        conn.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        conn.execute("SELECT pg_reload_conf()")
        conn.execute("SET default_transaction_read_only = off")
        job_id = insert_job(conn)
        worker.wait_for_log("read-only transaction")
        assert stored_job(conn, job_id).attempt == 0

        conn.execute("ALTER SYSTEM RESET default_transaction_read_only")
        conn.execute("SELECT pg_reload_conf()")

        until(lambda: stored_job(conn, job_id).state == "completed", message="work goes on")
