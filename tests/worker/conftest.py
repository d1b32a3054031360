from collections.abc import Callable, Iterator
from typing import Protocol

import psycopg
import pytest

from tests.support.jobs import StoredJob, open_connection, stored_job
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until

_FINISHED = ("completed", "discarded", "cancelled")


class StartWorker(Protocol):
    """Start a worker process of the test application; settings are variables without their prefix."""

    def __call__(self, **settings: object) -> RunningCommand: ...


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as connection:
        yield connection


@pytest.fixture
def start_worker(commands: Commands) -> StartWorker:
    def start(**settings: object) -> RunningCommand:
        chosen = {"worker_threads": 4, "heartbeat_seconds": 0.3, "rescue_after_seconds": 2, "poll_interval_seconds": 0.5}
        env = {_variable(name): str(value) for name, value in (chosen | settings).items()}
        worker = commands.start("worker", app="tests.worker.apps:app", env=env)
        worker.wait_for_log("worker_started")
        return worker

    return start


def _variable(name: str) -> str:
    return "DATABASE_URL" if name == "database_url" else f"SWEEPHAND_{name.upper()}"


@pytest.fixture
def ended(conn: psycopg.Connection) -> Callable[[int], StoredJob]:
    """Wait until a job is out of running and not claimable now, and return it."""

    def wait(job_id: int) -> StoredJob:
        def look() -> StoredJob | None:
            job = stored_job(conn, job_id)
            has_run = job.state in _FINISHED or job.scheduled_in_seconds > 1
            return job if has_run else None

        job = until(look, message=f"job {job_id} has run")
        assert job is not None
        return job

    return wait
