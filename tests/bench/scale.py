"""Whether claims, lists and retention stay fast among 5,000,000 finished jobs, and claims behind 200,000 future ones."""

import asyncio
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import timedelta
from uuid import uuid4

import psycopg

from sweephand import App, enqueue_many
from sweephand.model.outcomes import AttemptOutcome
from sweephand.model.states import JobState
from sweephand.postgres.claim import claim
from sweephand.postgres.connect import connect, connect_async
from sweephand.postgres.finish import FinishedAttempt, finish
from sweephand.postgres.job_filter import JobFilter
from sweephand.postgres.job_statistics import GroupBy, read_counts, read_kind
from sweephand.postgres.job_views import read_failed_jobs, read_jobs
from sweephand.postgres.migrate import migrate
from sweephand.postgres.retention import retention
from tests.bench.figures import Figure
from tests.support.databases import Databases

_FINISHED = 5_000_000
_FUTURE = 200_000
_BATCH = 100
_ROUNDS = 60
_DUE = 100_000
# Over the last 24 hours, one in a thousand discarded, a few of a rare kind; each with its attempt, as the product keeps them.
_FILL_FINISHED = """
INSERT INTO sweephand.job (kind, queue, state, args, attempt, max_attempts, timeout_seconds, created_at, scheduled_at,
    claimed_at, finished_at)
SELECT CASE WHEN n %% 1000000 = 1 THEN 'rare' ELSE 'mend' END, 'default',
    CASE WHEN n %% 1000 = 0 THEN 'discarded' ELSE 'completed' END,
    jsonb_build_object('product_id', n), 1, 25, 600, at, at, at, at
FROM (SELECT n, now() - interval '23 hours' * (1 - n / %(jobs)s::float8) AS at FROM generate_series(1, %(jobs)s) AS n) AS job
"""
_FILL_ATTEMPTS = """
INSERT INTO sweephand.job_attempt (job_id, attempt, started_at, ended_at, outcome, error, worker_name)
SELECT id, 1, finished_at, finished_at, state, CASE state WHEN 'discarded' THEN 'KeyError: ' || id END, 'bench' FROM sweephand.job
"""
_FILL_FUTURE = """
INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, scheduled_at)
SELECT 'mend', 'default', 'scheduled', jsonb_build_object('product_id', n), 25, 600,
    now() + interval '1 hour' + n * interval '1 s'
FROM generate_series(1, %(jobs)s) AS n
"""
_HOUR = timedelta(hours=1)
_QUESTIONS: Mapping[str, Callable[[psycopg.Connection], object]] = {
    "the latest jobs": lambda c: read_jobs(c, JobFilter(), limit=21),
    "the jobs of a rare kind": lambda c: read_jobs(c, JobFilter(kind="rare"), limit=21),
    "the jobs with an argument": lambda c: read_jobs(c, JobFilter(args={"product_id": "5000"}), limit=21),
    "the discarded ones": lambda c: read_jobs(c, JobFilter(states=(JobState.DISCARDED,)), limit=21),
    "the failed ones": lambda c: read_failed_jobs(c, JobFilter(), limit=20),
    "counts of an hour": lambda c: read_counts(c, by=GroupBy.QUEUE, since=_HOUR),
    "all about a kind, of an hour": lambda c: read_kind(c, "mend", since=_HOUR),
}

app = App("bench")


@app.job(unique=None)
def mend(product_id: int) -> None:
    """Do nothing; it is claimed and finished here without being run."""
    del product_id


def measure(server_url: str) -> list[Figure]:
    """Return the figures of three databases in one run: an empty one, one with history, one with jobs of the future."""
    databases = Databases(server_url, run_id="bench")
    try:
        with ExitStack() as closing:
            empty, history, future = (databases.create_clone(migrate) for _ in range(3))
            connections = {url: closing.enter_context(connect(url, application_name="bench")) for url in (empty, history, future)}
            _fill(connections[history], _FILL_FINISHED, jobs=_FINISHED)
            connections[history].execute(_FILL_ATTEMPTS)
            _fill(connections[future], _FILL_FUTURE, jobs=_FUTURE)
            for connection in connections.values():
                connection.execute("VACUUM ANALYZE")
            cycles: dict[str, list[float]] = {url: [] for url in connections}
            for _ in range(_ROUNDS):
                for url, connection in connections.items():
                    cycles[url].append(_claim_and_finish(connection))
            medians = {url: statistics.median(seconds) for url, seconds in cycles.items()}
            answers = {name: _seconds(ask, connections[history]) for name, ask in _QUESTIONS.items()}
            deleted_a_second = asyncio.run(_deleted_a_second(history))
    finally:
        databases.drop_all()
    return [
        Figure(f"claim and finish of {_BATCH} jobs in an empty table", medians[empty] * 1000, "ms"),
        Figure(f"… among {_FINISHED:,} finished ones, by that", medians[history] / medians[empty], "×", bound=1.3),
        Figure(f"… behind {_FUTURE:,} future ones, by that", medians[future] / medians[empty], "×", bound=1.3),
        *(Figure(f"{name}, among {_FINISHED:,} finished", seconds * 1000, "ms", bound=1000) for name, seconds in answers.items()),
        Figure(f"retention of {_DUE:,} of {_FINISHED:,} finished jobs", deleted_a_second, "jobs/s"),
        Figure(
            "… by the rate at which they are claimed and finished there",
            deleted_a_second / (_BATCH / medians[history]),
            "×",
            bound=1,
            is_floor=True,
        ),
    ]


def _fill(connection: psycopg.Connection, statement: str, *, jobs: int) -> None:
    connection.execute(statement.encode(), {"jobs": jobs})


def _claim_and_finish(connection: psycopg.Connection) -> float:
    """Return the seconds of claiming and finishing a batch that was enqueued for it."""
    with connection.transaction():
        enqueue_many(connection, mend, [{"product_id": number} for number in range(_BATCH)])
    start = time.perf_counter()
    token = str(uuid4())
    claimed = claim(connection, queue="default", kinds=["mend"], limit=_BATCH, worker_id=1, claim_token=token)
    ended = [
        FinishedAttempt(job.job_id, job.attempt, token, outcome=AttemptOutcome.COMPLETED, started=0, ended=0) for job in claimed
    ]
    stale = finish(connection, ended, worker_name="bench", monotonic_now=0)
    seconds = time.perf_counter() - start
    if len(claimed) != _BATCH or stale:
        raise RuntimeError(f"{len(claimed)} of {_BATCH} claimed, {len(stale)} of them stale")
    return seconds


def _seconds(ask: Callable[[psycopg.Connection], object], connection: psycopg.Connection) -> float:
    """Return the median seconds of three answers."""
    seconds: list[float] = []
    for _ in range(3):
        start = time.perf_counter()
        ask(connection)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


async def _deleted_a_second(url: str) -> float:
    """Return the jobs that retention deletes a second, of those that one run may delete; about 100,000 are due."""
    completed_hours = 23 * (1 - _DUE / _FINISHED)
    async with await connect_async(url, application_name="bench") as connection:
        start = time.perf_counter()
        report = await retention(
            connection, completed_hours=completed_hours, cancelled_hours=24, discarded_hours=168, tick_days=30, audit_days=365
        )
        seconds = time.perf_counter() - start
    if report.jobs < _DUE / 2:
        raise RuntimeError(f"only {report.jobs} jobs were deleted")
    return report.jobs / seconds
