"""What a worker says of itself on its endpoints."""

import json
import re
import signal
from http.client import HTTPConnection

from sweephand.postgres.embedded import EmbeddedPostgres
from sweephand.postgres.migrate import migrate
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until
from tests.worker.conftest import StartWorker


def _get(worker: RunningCommand, path: str) -> tuple[int, str]:
    found = re.search(r"metrics_port=(\d+)", worker.wait_for_log("endpoints_served"))
    assert found is not None
    connection = HTTPConnection("127.0.0.1", int(found.group(1)), timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def _reason(body: str) -> str:
    return str(json.loads(body)["reason"])


def test_a_worker_at_work_is_live_and_ready_and_exports_its_series(start_worker: StartWorker) -> None:
    worker = start_worker()

    until(lambda: _get(worker, "/readyz")[0] == 200, message="the worker is ready")
    assert _get(worker, "/livez")[0] == 200
    metrics = _get(worker, "/metrics")[1]
    assert "sweephand_worker_slots 4.0" in metrics
    assert 'sweephand_worker_jobs_total{kind="noop",outcome="completed",queue="default"} 0.0' in metrics
    assert 'sweephand_worker_in_progress{queue="default"} 0.0' in metrics


def test_a_worker_waits_for_the_schema_and_says_so(commands: Commands, empty_database_url: str) -> None:
    worker = commands.start("worker", app="tests.worker.apps:app", env={"DATABASE_URL": empty_database_url})
    worker.wait_for_log("waiting_for_database")
    status, body = _get(worker, "/readyz")
    assert (status, _get(worker, "/livez")[0]) == (503, 200)
    assert "sweephand migrate" in _reason(body)

    migrate(empty_database_url)

    worker.wait_for_log("worker_started")
    until(lambda: _get(worker, "/readyz")[0] == 200, message="the worker is ready")


def test_a_worker_that_waits_for_the_database_ends_on_sigterm(commands: Commands, empty_database_url: str) -> None:
    worker = commands.start("worker", app="tests.worker.apps:app", env={"DATABASE_URL": empty_database_url})
    worker.wait_for_log("waiting_for_database")

    worker.kill(signal.SIGTERM)

    assert worker.wait() == 0


def test_a_database_that_goes_away_makes_a_worker_unready_and_not_dead(
    own_postgres: EmbeddedPostgres, commands: Commands
) -> None:
    url = own_postgres.start()
    migrate(url)
    worker = commands.start("worker", app="tests.worker.apps:app", env={"DATABASE_URL": url})
    until(lambda: _get(worker, "/readyz")[0] == 200, message="the worker is ready")

    own_postgres.stop()

    until(lambda: _get(worker, "/readyz")[0] == 503, message="the worker is not ready")
    assert "PostgreSQL" in _reason(_get(worker, "/readyz")[1])
    assert _get(worker, "/livez")[0] == 200
    own_postgres.start()
    until(lambda: _get(worker, "/readyz")[0] == 200, message="the worker is ready again")
