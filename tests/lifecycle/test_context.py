"""A job knows which it is and where it comes from, in its code and in every line about it."""

import psycopg

from tests.engine.ticking import leading
from tests.lifecycle.apps import app
from tests.lifecycle.conftest import StartWorker
from tests.support.jobs import insert_job, stored_jobs


def test_a_sweeps_job_names_its_tick_in_code_and_logs(
    conn: psycopg.Connection, start_worker: StartWorker, database_url: str
) -> None:
    worker = start_worker()

    with leading(database_url, app) as ticker:
        tick_id = ticker.tick("stuck").tick_id

    told = worker.wait_for_log(": told")
    (job,) = stored_jobs(conn)
    about = f"job={job.id} kind=tell_context attempt=1"
    assert f"info {about} tick={tick_id}: told told_id={job.id} told_attempt=1 told_tick={tick_id} product_id=7" in told
    assert f"info {about} product_id=7: started tick={tick_id}" in worker.log
    worker.wait_for_log(f"info {about} product_id=7: completed")


def test_a_job_that_no_sweep_enqueued_names_no_tick(conn: psycopg.Connection, start_worker: StartWorker) -> None:
    worker = start_worker()

    job_id = insert_job(conn, "tell_context", args={"product_id": 8})

    told = worker.wait_for_log(": told")
    assert f"info job={job_id} kind=tell_context attempt=1: told told_id={job_id} told_attempt=1 told_tick=null" in told
    assert "tick=" not in worker.wait_for_log(": started")
