"""Jobs that complete themselves, in real worker processes that live, die and are taken for dead."""

import re
import urllib.request
from pathlib import Path

import psycopg
import pytest

from sweephand.postgres.connect import connect_async
from sweephand.postgres.rescue import rescue
from tests.lifecycle.conftest import StartWorker
from tests.support.jobs import insert_job, stored_attempts, stored_job
from tests.support.processes import RunningCommand
from tests.support.waiting import until

NO_WARNING = ("stale_finishes", "completion_left_open", "raised_after_completion")


def effects(conn: psycopg.Connection) -> list[tuple[int, int]]:
    return [(job_id, attempt) for job_id, attempt in conn.execute("SELECT job_id, attempt FROM effect").fetchall()]


def wait_for_state(conn: psycopg.Connection, job_id: int, state: str) -> None:
    until(lambda: stored_job(conn, job_id).state == state, message=f"job {job_id} is {state}")


def metric(worker: RunningCommand, name: str) -> float:
    """Return the sum of a metric's samples."""
    (port,) = re.findall(r"metrics_port=(\d+)", worker.wait_for_log("endpoints_served"))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        page = answer.read().decode()
    return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if re.match(rf"{name}[ {{]", line))


@pytest.mark.parametrize("kind", ["complete_itself", "complete_itself_async"])
def test_the_effect_and_the_completion_are_there_once(conn: psycopg.Connection, start_worker: StartWorker, kind: str) -> None:
    worker = start_worker()

    job_id = insert_job(conn, kind)

    wait_for_state(conn, job_id, "completed")
    assert effects(conn) == [(job_id, 1)]
    assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["completed"]
    until(lambda: metric(worker, "sweephand_worker_jobs_total") == 1, message="the attempt is counted")
    assert metric(worker, "sweephand_worker_stale_finishes_total") == 0
    assert not any(word in worker.log for word in NO_WARNING)


def test_a_function_that_raises_after_its_completion_leaves_the_job_completed(
    conn: psycopg.Connection, start_worker: StartWorker
) -> None:
    worker = start_worker()

    job_id = insert_job(conn, "complete_and_raise")

    line = worker.wait_for_log("raised_after_completion")
    assert f"job={job_id}" in line
    assert 'error="ValueError: too late"' in line
    assert stored_job(conn, job_id).state == "completed"
    assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["completed"]
    assert ": failed" not in worker.log
    assert "stale_finishes" not in worker.log


def test_a_completion_that_was_rolled_back_is_written_by_the_worker(conn: psycopg.Connection, start_worker: StartWorker) -> None:
    worker = start_worker()

    returned, failed = insert_job(conn, "roll_back_and_return"), insert_job(conn, "complete_and_fail_to_commit")

    wait_for_state(conn, returned, "completed")
    wait_for_state(conn, failed, "retryable")
    assert effects(conn) == []
    assert [attempt.error for attempt in stored_attempts(conn, failed)] == ["ValueError: not this time"]
    worker.wait_for_log('error="ValueError: not this time"')
    assert not any(word in worker.log for word in NO_WARNING)


async def test_a_worker_killed_before_the_commit_leaves_no_effect_and_the_next_attempt_exactly_one(
    conn: psycopg.Connection, start_worker: StartWorker, database_url: str
) -> None:
    worker = start_worker()
    job_id = insert_job(conn, "die_before_the_commit", max_attempts=2)
    worker.wait()
    assert effects(conn) == []
    conn.execute("UPDATE sweephand.worker SET heartbeat_at = now() - interval '1 hour'")
    async with await connect_async(database_url, application_name="test") as lane:
        await rescue(lane, rescue_after_seconds=2)

    start_worker()

    wait_for_state(conn, job_id, "completed")
    assert effects(conn) == [(job_id, 2)]
    assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["lost", "completed"]


async def test_a_job_that_was_taken_away_while_it_ran_leaves_no_effect_of_the_old_attempt(
    conn: psycopg.Connection, start_worker: StartWorker, database_url: str, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    worker = start_worker(heartbeat_seconds=60, rescue_after_seconds=600)
    job_id = insert_job(conn, "complete_when_open", args={"gate": str(gate)})
    wait_for_state(conn, job_id, "running")
    conn.execute("UPDATE sweephand.worker SET heartbeat_at = now() - interval '1 hour'")
    async with await connect_async(database_url, application_name="test") as lane:
        await rescue(lane, rescue_after_seconds=2)

    gate.touch()

    wait_for_state(conn, job_id, "completed")
    assert effects(conn) == [(job_id, 2)]
    assert [attempt.outcome for attempt in stored_attempts(conn, job_id)] == ["lost", "completed"]
    assert "StaleAttemptError" in worker.log


def test_a_transaction_that_is_left_open_holds_up_nobody_and_has_the_last_word(
    conn: psycopg.Connection, start_worker: StartWorker
) -> None:
    worker = start_worker()
    left = insert_job(conn, "leave_the_transaction_open")
    worker.wait_for_log("completion_left_open")

    neighbour = insert_job(conn)
    wait_for_state(conn, neighbour, "completed")
    state_meanwhile = stored_job(conn, left).state
    insert_job(conn, "close_what_was_left_open")

    wait_for_state(conn, left, "completed")
    assert state_meanwhile == "running"
    assert effects(conn) == [(left, 1)]
