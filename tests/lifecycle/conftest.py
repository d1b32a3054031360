from collections.abc import Iterator
from typing import Protocol

import psycopg
import pytest

from tests.support.jobs import open_connection
from tests.support.processes import Commands, RunningCommand


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as connection:
        yield connection


class StartWorker(Protocol):
    """Start a worker process of these tests' application; settings are variables without their prefix."""

    def __call__(self, **settings: object) -> RunningCommand: ...


@pytest.fixture
def start_worker(commands: Commands, conn: psycopg.Connection) -> StartWorker:
    conn.execute("CREATE TABLE effect (job_id bigint, attempt integer)")

    def start(**settings: object) -> RunningCommand:
        chosen = {"worker_threads": 4, "heartbeat_seconds": 0.3, "rescue_after_seconds": 2, "poll_interval_seconds": 0.5}
        env = {f"SWEEPHAND_{name.upper()}": str(value) for name, value in (chosen | settings).items()}
        worker = commands.start("worker", app="tests.lifecycle.apps:app", env=env)
        worker.wait_for_log("worker_started")
        return worker

    return start
