"""Read jobs for people: lists, one with its attempts, and those that failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg import sql

from sweephand.model.errors import NotFoundError
from sweephand.model.lifecycle import UNFINISHED
from sweephand.model.states import JobState
from sweephand.postgres.job_filter import JobFilter
from sweephand.postgres.moments import utc_row

# The last error is looked up for the chosen rows only, by the attempts' primary key.
_COLUMNS = sql.SQL(
    """
SELECT job.id, job.kind, job.queue, job.state, job.args, job.attempt, job.max_attempts, job.timeout_seconds, job.tick_id,
    job.created_at, job.scheduled_at, job.claimed_at, job.finished_at, job.cancel_requested_at, job.cancel_reason,
    CASE WHEN job.state = 'running' THEN (SELECT name FROM sweephand.worker WHERE worker.id = job.worker_id) END AS worker_name,
    (SELECT error FROM sweephand.job_attempt WHERE job_id = job.id AND error IS NOT NULL
     ORDER BY attempt DESC, started_at DESC LIMIT 1) AS last_error
"""
)
# Few jobs are in these states, and each has a partial index. `id + 0` keeps the planner from walking down the primary key
# through all the completed ones in search of them, which a LIMIT tempts it to.
_SPARSE = frozenset({*UNFINISHED, JobState.DISCARDED})
_LIST = sql.SQL(
    """{columns} FROM (
    SELECT * FROM sweephand.job WHERE {condition} AND {before} ORDER BY {order} DESC LIMIT %(limit)s) AS job
ORDER BY job.id DESC"""
)
# Any other filter is tried on the latest jobs only: no index serves all of them, and millions of completed jobs would be read
# in search of a few. The inner LIMIT counts what is looked at, the outer one what is found; the walk stops at either.
WALK_BOUND = 200_000
_WALK = sql.SQL(
    """{columns} FROM (
    SELECT * FROM (
        SELECT * FROM sweephand.job WHERE {older} AND {before} ORDER BY id DESC LIMIT %(walk_bound)s) AS job
    WHERE {condition} ORDER BY id DESC LIMIT %(limit)s) AS job
ORDER BY job.id DESC"""
)
_WALKED_TO = sql.SQL("SELECT id FROM sweephand.job WHERE {older} AND {before} ORDER BY id DESC OFFSET %(walk_bound)s - 1 LIMIT 2")
_FAILED = sql.SQL(
    """{columns} FROM (
    (SELECT * FROM sweephand.job WHERE state = 'discarded' AND {condition} ORDER BY finished_at DESC, id DESC LIMIT %(limit)s)
    UNION ALL
    (SELECT * FROM sweephand.job WHERE state = 'retryable' AND {condition} ORDER BY id + 0 DESC LIMIT %(limit)s)
) AS job
ORDER BY coalesce(job.finished_at, (SELECT max(ended_at) FROM sweephand.job_attempt WHERE job_id = job.id)) DESC NULLS LAST,
    job.id DESC
LIMIT %(limit)s"""
)
_ONE = sql.SQL("{columns} FROM sweephand.job WHERE id = %(id)s")
_ATTEMPTS = """
SELECT attempt, started_at, ended_at, outcome, error, traceback, worker_name
FROM sweephand.job_attempt WHERE job_id = %(id)s ORDER BY started_at, attempt
"""


@dataclass(frozen=True, slots=True)
class JobView:
    """Be a job as it stands. `last_error` is that of its latest attempt that had one."""

    id: int
    kind: str
    queue: str
    state: str
    args: Mapping[str, object]
    attempt: int
    max_attempts: int
    timeout_seconds: float
    tick_id: int | None
    created_at: datetime
    scheduled_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    cancel_requested_at: datetime | None
    cancel_reason: str | None
    worker_name: str | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class AttemptView:
    """Be an attempt that has ended, and how."""

    attempt: int
    started_at: datetime
    ended_at: datetime
    outcome: str
    error: str | None
    traceback: str | None
    worker_name: str | None


@dataclass(frozen=True, slots=True)
class JobList:
    """Be the jobs that were found. `searched_to_id`: jobs below it were not looked at; None if none was left out."""

    jobs: Sequence[JobView]
    searched_to_id: int | None = None


def read_jobs(
    connection: psycopg.Connection,
    which: JobFilter,
    *,
    limit: int,
    before_id: int | None = None,
    walk_bound: int = WALK_BOUND,
) -> JobList:
    """Return the jobs with the highest ids, highest first; below `before_id` if it is given.

    A filter that no index serves, such as a kind among completed jobs, is tried on the latest `walk_bound` jobs.
    """
    before = sql.SQL("true") if before_id is None else sql.SQL("id < %(before_id)s")
    is_sparse = bool(which.states) and _SPARSE.issuperset(which.states)
    is_served = which.is_empty or which.tick_id is not None or is_sparse
    order = sql.SQL("id + 0" if is_sparse else "id")
    parts = {
        "columns": _COLUMNS,
        "condition": which.condition(),
        "older": which.age_condition(),
        "before": before,
        "order": order,
    }
    values = {**which.values(), "limit": limit, "before_id": before_id, "walk_bound": walk_bound}
    with connection.cursor(row_factory=utc_row(JobView)) as cursor:
        jobs = cursor.execute((_LIST if is_served else _WALK).format(**parts), values).fetchall()
    if is_served or len(jobs) == limit:
        return JobList(jobs)
    walked_to = connection.execute(_WALKED_TO.format(**parts), values).fetchall()
    return JobList(jobs, searched_to_id=int(walked_to[0][0]) if len(walked_to) == 2 else None)


def read_failed_jobs(connection: psycopg.Connection, which: JobFilter, *, limit: int) -> list[JobView]:
    """Return discarded jobs and those that wait for a retry, the latest failure first; the filter's states do not count."""
    statement = _FAILED.format(columns=_COLUMNS, condition=which.condition())
    with connection.cursor(row_factory=utc_row(JobView)) as cursor:
        return cursor.execute(statement, {**which.values(), "limit": limit}).fetchall()


def read_job(connection: psycopg.Connection, job_id: int) -> JobView:
    """Return one job.

    Raises:
        NotFoundError: there is none of this id.
    """
    with connection.cursor(row_factory=utc_row(JobView)) as cursor:
        job = cursor.execute(_ONE.format(columns=_COLUMNS), {"id": job_id}).fetchone()
    if job is None:
        raise NotFoundError(f"there is no job {job_id}; finished jobs are deleted when their retention is over")
    return job


def read_attempts(connection: psycopg.Connection, job_id: int) -> list[AttemptView]:
    """Return the attempts of a job that have ended, in their order."""
    with connection.cursor(row_factory=utc_row(AttemptView)) as cursor:
        return cursor.execute(_ATTEMPTS, {"id": job_id}).fetchall()
