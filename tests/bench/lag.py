"""How late ticks are while the cleaner has five million rows to delete and workers keep every core busy."""

import tempfile
import time
from pathlib import Path

import psycopg

from sweephand.postgres.migrate import migrate
from tests.bench.figures import Figure
from tests.support.databases import Databases
from tests.support.jobs import open_connection
from tests.support.processes import Commands
from tests.support.waiting import until

_APP = "tests.bench.busy_app:app"
_WORKERS = 2
_START_SECONDS = 5.0  # in which everything connects for the first time
_SECONDS = 40.0

# Every second row has an attempt that goes with it; all are past their retention.
_FINISHED = """
INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, scheduled_at, finished_at)
SELECT 'work', 'default', 'completed', '{}', 25, 600, now() - interval '2 days', now() - interval '2 days' - n * interval '1 ms'
FROM generate_series(1, 5000000) AS n;
INSERT INTO sweephand.job_attempt (job_id, attempt, started_at, ended_at, outcome)
SELECT id, 1, finished_at, finished_at, 'completed' FROM sweephand.job WHERE id % 2 = 0;
ANALYZE sweephand.job, sweephand.job_attempt
"""
_WORK = """
INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, scheduled_at)
SELECT 'work', 'default', 'available', jsonb_build_object('row_id', n), 25, 600, now() FROM generate_series(1, 500000) AS n
"""
# A tick that did not run at all is later than any bound.
_LAG = """
SELECT count(*), count(*) FILTER (WHERE outcome NOT IN ('ok', 'empty')),
    percentile_disc(0.99) WITHIN GROUP (ORDER BY CASE WHEN outcome IN ('ok', 'empty')
        THEN extract(epoch FROM started_at - planned_at) ELSE 3600 END)
FROM sweephand.tick WHERE reason = 'tick' AND planned_at > %s
"""


def measure(server_url: str) -> list[Figure]:
    """Return the figures of one dispatcher with ten sweeps a second, beside two workers that have more to do than they can."""
    databases = Databases(server_url, run_id="bench")
    url = databases.create_clone(migrate)
    with tempfile.TemporaryDirectory() as directory:
        commands = Commands(Path(directory), database_url=url)
        try:
            with open_connection(url) as connection:
                return _measure(connection, commands)
        finally:
            commands.destroy_all()
            databases.drop_all()


def _measure(connection: psycopg.Connection, commands: Commands) -> list[Figure]:
    connection.execute(_FINISHED)
    connection.execute(_WORK)
    for worker in [commands.start("worker", app=_APP) for _ in range(_WORKERS)]:
        worker.wait_for_log("worker_started")
    commands.start("dispatcher", app=_APP).wait_for_log("term_began")
    _let_pass(_START_SECONDS)
    since = connection.execute("SELECT now()").fetchone()
    kept = _old_jobs(connection)
    _let_pass(_SECONDS)
    left = _old_jobs(connection)
    ticks, not_run, lag = _numbers(connection, _LAG, *(since or ()))
    return [
        Figure("tick lag beside a busy cleaner and busy workers, p99", lag, "s", bound=1),
        Figure("ticks planned meanwhile", ticks, "ticks"),
        Figure("of them not run", not_run, "ticks"),
        Figure("rows deleted meanwhile", kept - left, "rows"),
        Figure("rows still to be deleted at the end", left, "rows"),
    ]


def _let_pass(seconds: float) -> None:
    begun = time.monotonic()
    until(lambda: time.monotonic() - begun > seconds, deadline_seconds=2 * seconds, message="time passes")


def _old_jobs(connection: psycopg.Connection) -> float:
    return _numbers(connection, "SELECT count(*) FROM sweephand.job WHERE finished_at < now() - interval '1 day'")[0]


def _numbers(connection: psycopg.Connection, query: str, *values: object) -> tuple[float, ...]:
    row = connection.execute(query.encode(), values or None).fetchone()
    return tuple(float(value) for value in row or ())
