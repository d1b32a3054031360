"""The application is told of each attempt that failed, and cannot do any harm by it."""

from pathlib import Path

import psycopg
import pytest

from tests.lifecycle.conftest import StartWorker
from tests.support.jobs import insert_job, stored_attempts, stored_job
from tests.support.waiting import until


def test_each_failed_attempt_is_reported_with_its_exception(
    conn: psycopg.Connection, start_worker: StartWorker, tmp_path: Path
) -> None:
    worker = start_worker()

    plain = insert_job(conn, "fail", args={"message": "no stock"}, attempt=2)
    asynchronous = insert_job(conn, "fail_async", args={"message": "no stock"}, attempt=24)
    too_long = insert_job(conn, "overrun", args={"gate": str(tmp_path / "never")}, timeout_seconds=1, attempt=2)
    bad_arguments = insert_job(conn, "fail", args={"mesage": "no stock"})
    discarded = insert_job(conn, "end_by", args={"signal_name": "discard"})
    retried = insert_job(conn, "end_by", args={"signal_name": "retry"})

    worker.wait_for_log(f"reported failed_job={plain} of_attempt=3 error_type=ValueError")
    worker.wait_for_log(f"reported failed_job={asynchronous} of_attempt=25 error_type=ValueError")
    worker.wait_for_log(f"reported failed_job={too_long} of_attempt=3 error_type=TimeLimitExceeded")
    worker.wait_for_log(f"reported failed_job={bad_arguments} of_attempt=1 error_type=ArgumentsError")
    worker.wait_for_log(f"reported failed_job={discarded} of_attempt=1 error_type=DiscardJob")
    worker.wait_for_log(f"reported failed_job={retried} of_attempt=1 error_type=RetryJob")


@pytest.mark.parametrize("signal_name", ["snooze", "cancel"])
def test_an_attempt_that_did_not_fail_is_not_reported(
    conn: psycopg.Connection, start_worker: StartWorker, signal_name: str
) -> None:
    worker = start_worker(worker_threads=1)

    quiet = insert_job(conn, "end_by", args={"signal_name": signal_name})
    loud = insert_job(conn, "fail", args={"message": "no stock"}, attempt=2)

    worker.wait_for_log(f"reported failed_job={loud}")
    until(lambda: stored_attempts(conn, quiet), message="the quiet one has ended")
    assert f"reported failed_job={quiet}" not in worker.log


def test_a_hook_that_fails_is_logged_and_changes_nothing(conn: psycopg.Connection, start_worker: StartWorker) -> None:
    worker = start_worker(worker_threads=1)

    job_id = insert_job(conn, "fail", args={"message": "break the hook"}, attempt=2)
    neighbour = insert_job(conn)

    worker.wait_for_log(f"error_hook_failed job_id={job_id}")
    until(lambda: stored_job(conn, neighbour).state == "completed", message="the neighbour is completed")
    assert stored_job(conn, job_id).state == "retryable"
    assert [attempt.error for attempt in stored_attempts(conn, job_id)] == ["ValueError: break the hook"]
    assert worker.is_running()
