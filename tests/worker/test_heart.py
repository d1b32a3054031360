"""The worker's row: there while it works, gone when it has stopped."""

from collections.abc import Iterator
from threading import Thread

import psycopg
import pytest
from prometheus_client import CollectorRegistry

from sweephand.telemetry import DatabaseMetrics, WorkerMetrics
from sweephand.worker.heart import Heart
from sweephand.worker.interrupts import Interrupts
from sweephand.worker.job_log import JobLog
from sweephand.worker.link import DatabaseLink
from tests.support.jobs import open_connection
from tests.support.waiting import until

_WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'heart' AND wait_event_type = 'Lock'
"""


@pytest.fixture
def heart(database_url: str) -> Iterator[Heart]:
    registry = CollectorRegistry()
    metrics = DatabaseMetrics.create(registry)
    heart = Heart(
        link=DatabaseLink(database_url, application_name="heart", prepare=True, metrics=metrics),
        name="worker-0",
        app_name="tidy",
        queues=["default"],
        slots=1,
        heartbeat_seconds=0.1,
        rescue_after_seconds=30,
        interrupts=Interrupts(),
        log=JobLog(),
        metrics=WorkerMetrics.create(registry),
        reason_not_to_claim=lambda: None,
    )
    heart.register()
    heart.start()
    yield heart
    heart.stop()


def test_a_worker_that_is_stopped_in_the_middle_of_a_beat_leaves_the_table(
    heart: Heart, conn: psycopg.Connection, database_url: str
) -> None:
    stopping = Thread(target=heart.stop)
    with open_connection(database_url) as holder, holder.transaction():
        holder.execute("LOCK TABLE sweephand.worker IN EXCLUSIVE MODE")
        until(lambda: conn.execute(_WAITING).fetchone() == (1,), message="a beat waits")

        stopping.start()
        stopping.join(0.2)  # it waits for that beat

    stopping.join()
    until(lambda: not heart.is_alive, message="the heart stands still")
    assert conn.execute("SELECT count(*) FROM sweephand.worker").fetchone() == (0,)
