"""How attempts end, in a real worker process."""

import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from sweephand.postgres.queues import limit_queue
from tests.support.jobs import (
    StoredJob,
    count_by_state,
    insert_job,
    insert_jobs,
    stored_attempts,
    stored_job,
)
from tests.support.waiting import until
from tests.worker.conftest import StartWorker

Ended = Callable[[int], StoredJob]


def test_jobs_are_completed_with_one_attempt_each(conn: psycopg.Connection, start_worker: StartWorker) -> None:
    insert_jobs(conn, 1_000)

    start_worker()

    until(lambda: count_by_state(conn) == {"completed": 1_000}, message="all jobs are completed")
    assert conn.execute("SELECT count(*), count(DISTINCT job_id) FROM sweephand.job_attempt").fetchone() == (1_000, 1_000)


def test_a_limited_queue_goes_on_as_its_jobs_end(conn: psycopg.Connection, start_worker: StartWorker) -> None:
    limit_queue(conn, "default", concurrency_limit=2)
    insert_jobs(conn, 50)

    start_worker(poll_interval_seconds=600)

    until(lambda: count_by_state(conn) == {"completed": 50}, message="all jobs are completed, without any poll")


def test_the_log_tells_of_a_jobs_start_and_end_without_its_texts(
    conn: psycopg.Connection, start_worker: StartWorker, ended: Ended, tmp_path: Path
) -> None:
    gate = tmp_path / "open"
    gate.touch()
    noop, hold = insert_job(conn, args={"n": 9}), insert_job(conn, "hold", args={"gate": str(gate)})

    worker = start_worker()
    ended(noop), ended(hold)

    until(lambda: worker.log.count(": completed") == 2, message="both ends are logged")
    assert re.search(rf"info job={noop} kind=noop attempt=1 n=9: started\n", worker.log)
    assert re.search(rf"info job={noop} kind=noop attempt=1 n=9: completed seconds=[\d.e-]+\n", worker.log)
    assert f"job={hold} kind=hold attempt=1: started\n" in worker.log
    assert str(gate) not in worker.log


def test_a_failure_is_recorded_with_its_traceback_and_retried_later(
    conn: psycopg.Connection, start_worker: StartWorker, ended: Ended
) -> None:
    job_id = insert_job(conn, "fail", args={"message": "no stock"}, attempt=2)

    worker = start_worker()

    job = ended(job_id)
    (attempt,) = stored_attempts(conn, job_id)
    assert (job.state, job.attempt) == ("retryable", 3)
    assert 72 <= job.scheduled_in_seconds <= 90
    assert (attempt.outcome, attempt.error) == ("retried", "ValueError: no stock")
    assert "in fail\n" in str(attempt.traceback)
    assert "runner.py" not in str(attempt.traceback)
    worker.wait_for_log('error="ValueError: no stock"')


@pytest.mark.parametrize(("kind", "runs"), [("fail_thrice", 3), ("fail_always", 25)])
def test_a_job_that_always_fails_runs_exactly_as_often_as_it_may(
    conn: psycopg.Connection, start_worker: StartWorker, ended: Ended, kind: str, runs: int
) -> None:
    job_id = insert_job(conn, kind, max_attempts=runs)

    start_worker(poll_interval_seconds=0.05)

    job = ended(job_id)
    attempts = stored_attempts(conn, job_id)
    assert (job.state, job.attempt) == ("discarded", runs)
    assert [attempt.attempt for attempt in attempts] == list(range(1, runs + 1))
    assert [attempt.outcome for attempt in attempts] == ["retried"] * (runs - 1) + ["discarded"]


@pytest.mark.parametrize(
    ("signal_name", "state", "attempt", "in_seconds", "outcome"),
    [
        ("snooze", "scheduled", 0, 90, "snoozed"),
        ("cancel", "cancelled", 1, 0, "cancelled"),
        ("discard", "discarded", 1, 0, "discarded"),
        ("retry", "retryable", 1, 45, "retried"),
    ],
)
def test_a_job_can_say_how_its_attempt_ends(
    conn: psycopg.Connection,
    start_worker: StartWorker,
    ended: Ended,
    signal_name: str,
    state: str,
    attempt: int,
    in_seconds: float,
    outcome: str,
) -> None:
    job_id = insert_job(conn, "end_by", args={"signal_name": signal_name})

    start_worker()

    job = ended(job_id)
    assert (job.state, job.attempt) == (state, attempt)
    assert job.scheduled_in_seconds == pytest.approx(in_seconds, abs=15)
    assert [recorded.outcome for recorded in stored_attempts(conn, job_id)] == [outcome]


def test_an_attempt_past_its_time_limit_is_interrupted_and_retried(
    conn: psycopg.Connection, start_worker: StartWorker, ended: Ended, tmp_path: Path
) -> None:
    job_id = insert_job(conn, "overrun", args={"gate": str(tmp_path / "never")}, timeout_seconds=1, attempt=1)
    neighbour = insert_job(conn)

    start_worker(worker_threads=1)

    assert ended(job_id).state == "retryable"
    (attempt,) = stored_attempts(conn, job_id)
    assert attempt.error == "timed out after 1 s"
    assert attempt.seconds == pytest.approx(1.0, abs=0.9)
    assert ended(neighbour).state == "completed"


def test_what_cannot_be_stored_is_escaped_and_the_failure_recorded(
    conn: psycopg.Connection, start_worker: StartWorker, ended: Ended
) -> None:
    unstorable, textless = insert_job(conn, "fail_unstorably", attempt=2), insert_job(conn, "fail_without_text", attempt=2)

    start_worker()

    assert ended(unstorable).state == "retryable"
    assert ended(textless).state == "retryable"
    (attempt,) = stored_attempts(conn, unstorable)
    assert attempt.error == r"ValueError: a NUL \x00, a surrogate \udc80 and ü"
    assert r"a NUL \x00" in str(attempt.traceback)
    assert "RuntimeError" in str(stored_attempts(conn, textless)[0].error)


def test_what_would_end_a_thread_is_the_jobs_failure(conn: psycopg.Connection, start_worker: StartWorker, ended: Ended) -> None:
    job_id = insert_job(conn, "exit_thread", attempt=2)
    neighbour = insert_job(conn)

    worker = start_worker(worker_threads=1)

    assert ended(job_id).state == "retryable"
    assert ended(neighbour).state == "completed"
    assert worker.is_running()


def test_a_backoff_that_returns_nonsense_is_replaced(conn: psycopg.Connection, start_worker: StartWorker, ended: Ended) -> None:
    job_id = insert_job(conn, "fail_with_a_broken_backoff", attempt=1)

    start_worker()

    assert ended(job_id).scheduled_in_seconds == pytest.approx(16, abs=3)


@pytest.mark.parametrize("args", [{"n": "many"}, {"m": 1}, {"n": [1]}])
def test_arguments_that_the_job_cannot_take_discard_it_and_nobody_else(
    conn: psycopg.Connection, start_worker: StartWorker, ended: Ended, args: dict[str, object]
) -> None:
    bad = insert_job(conn, args=args)
    good = insert_job(conn, args={"n": 1})

    start_worker()

    assert ended(bad).state == "discarded"
    assert ended(good).state == "completed"
    assert "ArgumentsError" in str(stored_attempts(conn, bad)[0].error)


def test_a_kind_that_this_release_does_not_know_loses_no_attempt(
    conn: psycopg.Connection, start_worker: StartWorker, ended: Ended
) -> None:
    unknown, known = insert_job(conn, "introduced_by_a_newer_release"), insert_job(conn)

    start_worker()

    ended(known)
    job = stored_job(conn, unknown)
    assert (job.state, job.attempt) == ("available", 0)


def test_a_job_knows_itself_in_threads_and_on_the_event_loop(
    conn: psycopg.Connection, start_worker: StartWorker, ended: Ended
) -> None:
    plain, asynchronous = insert_job(conn, "tell_context"), insert_job(conn, "tell_context_async")

    start_worker()

    ended(plain), ended(asynchronous)
    assert stored_attempts(conn, plain)[0].error == "tell_context default 1/25 None"
    assert stored_attempts(conn, asynchronous)[0].error == "tell_context_async 1"


@pytest.mark.parametrize("kind", ["hold", "hold_async"])
@pytest.mark.parametrize("listen", [True, False])
def test_a_running_job_is_told_of_its_cancellation_within_two_seconds(
    conn: psycopg.Connection,
    start_worker: StartWorker,
    tmp_path: Path,
    kind: str,
    listen: bool,  # noqa: FBT001
) -> None:
    job_id = insert_job(conn, kind, args={"gate": str(tmp_path / "never")})
    start_worker(listen=listen, heartbeat_seconds=5, rescue_after_seconds=30)
    until(lambda: stored_job(conn, job_id).state == "running", message="the job runs")

    conn.execute("UPDATE sweephand.job SET cancel_requested_at = now(), cancel_reason = 'sold out' WHERE id = %s", (job_id,))

    until(lambda: stored_job(conn, job_id).state == "cancelled", deadline_seconds=10, message="the job is cancelled")
    (attempt,) = stored_attempts(conn, job_id)
    assert (attempt.outcome, attempt.error) == ("cancelled", "sold out")
