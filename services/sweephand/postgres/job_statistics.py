"""Count jobs for people: by queue and kind, what a kind takes, and which errors are frequent."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import psycopg
from psycopg import sql

from sweephand.model.errors import NotFoundError
from sweephand.postgres.moments import utc_row

ERRORS_BOUND = 100_000
"""How many of the latest errors are grouped at most."""
_MEASURED_JOBS = 1_000

# Three parts, each with a partial index; finished jobs are counted for the given time only, since they are history.
_COUNTS = sql.SQL(
    """
SELECT {by} AS name, state, count(*) AS jobs, min(scheduled_at) FILTER (WHERE scheduled_at <= now()) AS oldest_due_at
FROM sweephand.job WHERE state IN ('scheduled', 'available', 'retryable') AND {which} GROUP BY {by}, state
UNION ALL
SELECT {by}, state, count(*), NULL FROM sweephand.job WHERE state = 'running' AND {which} GROUP BY {by}, state
UNION ALL
SELECT {by}, state, count(*), NULL FROM sweephand.job
WHERE state IN ('completed', 'discarded', 'cancelled') AND finished_at > now() - %(since)s AND {which} GROUP BY {by}, state
ORDER BY name
"""
)
# OFFSET 0 keeps the planner from a hash join, for which it would read all attempts.
_ATTEMPTS_OF_KIND = f"""
SELECT count(*)::integer AS attempts, count(*) FILTER (WHERE outcome = 'completed')::integer AS completed,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median_seconds,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95_seconds, max(seconds) AS max_seconds
FROM (
    SELECT outcome, extract(epoch FROM ended_at - started_at)::float8 AS seconds FROM (
        SELECT id FROM sweephand.job
        WHERE state IN ('completed', 'discarded', 'cancelled') AND finished_at > now() - %(since)s AND kind = %(kind)s
        ORDER BY finished_at DESC, id DESC LIMIT {_MEASURED_JOBS}) AS job
    CROSS JOIN LATERAL (SELECT * FROM sweephand.job_attempt WHERE job_id = job.id OFFSET 0) AS attempt) AS measured
"""  # noqa: S608 - made of a constant
# What stands for one error: its first line, with numbers and ids taken out.
_ERRORS = f"""
SELECT kind, pattern, count(*)::integer AS attempts, count(DISTINCT job_id)::integer AS jobs, min(ended_at) AS first_at,
    max(ended_at) AS last_at, (array_agg(job_id ORDER BY ended_at DESC))[1] AS last_job_id,
    (array_agg(error ORDER BY ended_at DESC))[1] AS last_error
FROM (
    SELECT job_id, ended_at, error, regexp_replace(left(split_part(error, E'\\n', 1), 300),
        '[0-9a-fA-F]{{8}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{4}}-[0-9a-fA-F]{{12}}|0x[0-9a-fA-F]+|[0-9]+', '#', 'g')
        AS pattern
    FROM sweephand.job_attempt
    WHERE error IS NOT NULL AND outcome IN ('retried', 'discarded', 'lost') AND ended_at > now() - %(since)s
    ORDER BY ended_at DESC LIMIT {ERRORS_BOUND}) AS failed
JOIN sweephand.job ON job.id = failed.job_id
WHERE (kind = %(kind)s OR %(kind)s::text IS NULL) AND (queue = %(queue)s OR %(queue)s::text IS NULL)
GROUP BY kind, pattern ORDER BY attempts DESC, last_at DESC LIMIT %(limit)s
"""  # noqa: S608 - made of constants
_SWEEPS_OF_KIND = "SELECT app || '/' || name FROM sweephand.sweep WHERE kind = %(kind)s ORDER BY 1"


class GroupBy(StrEnum):
    """Say what jobs are counted by."""

    QUEUE = "queue"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class JobCounts:
    """Count the jobs of a queue or kind: unfinished ones all, finished ones of the time asked for.

    `oldest_due_at` is when the job was due that waits longest.
    """

    name: str
    scheduled: int = 0
    available: int = 0
    running: int = 0
    retryable: int = 0
    completed: int = 0
    discarded: int = 0
    cancelled: int = 0
    oldest_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AttemptNumbers:
    """Measure the attempts of the last 1,000 jobs of a kind that finished; seconds are None if there are none."""

    attempts: int
    completed: int
    median_seconds: float | None
    p95_seconds: float | None
    max_seconds: float | None


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Be all failed attempts of a kind whose errors differ in numbers only."""

    kind: str
    pattern: str
    attempts: int
    jobs: int
    first_at: datetime
    last_at: datetime
    last_job_id: int
    last_error: str


@dataclass(frozen=True, slots=True)
class KindView:
    """Be what is known of a kind of jobs, and which sweeps enqueue it."""

    kind: str
    counts: JobCounts
    by_queue: tuple[JobCounts, ...]
    numbers: AttemptNumbers
    errors: tuple[ErrorGroup, ...]
    sweeps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _CountRow:
    name: str
    state: str
    jobs: int
    oldest_due_at: datetime | None


def read_counts(connection: psycopg.Connection, *, by: GroupBy, since: timedelta, kind: str | None = None) -> list[JobCounts]:
    """Return the counts of each queue or kind that has jobs, of one kind only if it is given."""
    return _by_name(_count_rows(connection, by=by, since=since, kind=kind))


def read_errors(
    connection: psycopg.Connection, *, since: timedelta, limit: int, kind: str | None = None, queue: str | None = None
) -> list[ErrorGroup]:
    """Return the groups of errors, the most frequent first."""
    with connection.cursor(row_factory=utc_row(ErrorGroup)) as cursor:
        return cursor.execute(_ERRORS, {"since": since, "limit": limit, "kind": kind, "queue": queue}).fetchall()


def read_kind(connection: psycopg.Connection, kind: str, *, since: timedelta) -> KindView:
    """Return what is known of a kind.

    Raises:
        NotFoundError: no job of the kind is unfinished or finished in that time, and no sweep enqueues it.
    """
    rows = _count_rows(connection, by=GroupBy.QUEUE, since=since, kind=kind)
    sweeps = tuple(str(row[0]) for row in connection.execute(_SWEEPS_OF_KIND, {"kind": kind}).fetchall())
    if not rows and not sweeps:
        raise NotFoundError(
            f"there is no job of the kind {kind} in that time, and no sweep enqueues it; see: sweephand jobs stats"
        )
    with connection.cursor(row_factory=utc_row(AttemptNumbers)) as cursor:
        numbers = cursor.execute(_ATTEMPTS_OF_KIND, {"kind": kind, "since": since}).fetchone()
    if numbers is None:
        raise AssertionError("an aggregate gave no row")
    return KindView(
        kind=kind,
        counts=_counts(kind, rows),
        by_queue=tuple(_by_name(rows)),
        numbers=numbers,
        errors=tuple(read_errors(connection, since=since, limit=5, kind=kind)),
        sweeps=sweeps,
    )


def _count_rows(connection: psycopg.Connection, *, by: GroupBy, since: timedelta, kind: str | None) -> list[_CountRow]:
    statement = _COUNTS.format(by=sql.Identifier(by.value), which=sql.SQL("true") if kind is None else sql.SQL("kind = %(kind)s"))
    with connection.cursor(row_factory=utc_row(_CountRow)) as cursor:
        return cursor.execute(statement, {"since": since, "kind": kind}).fetchall()


def _by_name(rows: Iterable[_CountRow]) -> list[JobCounts]:
    by_name: dict[str, list[_CountRow]] = {}
    for row in rows:
        by_name.setdefault(row.name, []).append(row)
    return [_counts(name, of_name) for name, of_name in by_name.items()]


def _counts(name: str, rows: list[_CountRow]) -> JobCounts:
    jobs: Counter[str] = Counter()
    for row in rows:
        jobs[row.state] += row.jobs
    due = [row.oldest_due_at for row in rows if row.oldest_due_at is not None]
    return JobCounts(
        name=name,
        scheduled=jobs["scheduled"],
        available=jobs["available"],
        running=jobs["running"],
        retryable=jobs["retryable"],
        completed=jobs["completed"],
        discarded=jobs["discarded"],
        cancelled=jobs["cancelled"],
        oldest_due_at=min(due, default=None),
    )
