"""Put jobs into a database in any state, and look at what became of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from sweephand.postgres.connect import connect
from sweephand.postgres.workers import register_worker


@dataclass(frozen=True, slots=True)
class StoredJob:
    """Be a job as it lies in the database."""

    id: int
    kind: str
    state: str
    attempt: int
    claim_token: str | None
    worker_id: int | None
    scheduled_in_seconds: float
    finished_at: datetime | None
    has_key: bool


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """Be an attempt as it lies in the database."""

    job_id: int
    attempt: int
    outcome: str
    error: str | None
    traceback: str | None
    worker_name: str | None
    seconds: float


def open_connection(database_url: str) -> psycopg.Connection:
    """Return an autocommit connection; use it with `with`."""
    return connect(database_url, application_name="test")


def insert_job(
    conn: psycopg.Connection,
    kind: str = "noop",
    *,
    args: Mapping[str, object] | None = None,
    queue: str = "default",
    state: str = "available",
    max_attempts: int = 25,
    attempt: int = 0,
    timeout_seconds: float = 600,
    in_seconds: float = 0,
    unique_key: bytes | None = None,
    unique_until_start: bool = False,
    retain_seconds: float | None = None,
    finished_ago_seconds: float | None = None,
) -> int:
    """Add one job without notifying anybody, and return its id."""
    row = conn.execute(
        """
        INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, attempt, timeout_seconds, scheduled_at,
            unique_key, unique_until_start, retain_seconds, finished_at)
        VALUES (%s, %s, %s, %s, %s, %s, %s, now() + make_interval(secs => %s), %s, %s, %s,
            now() - make_interval(secs => %s))
        RETURNING id
        """,
        (
            kind,
            queue,
            state,
            Jsonb(dict(args or {})),
            max_attempts,
            attempt,
            timeout_seconds,
            in_seconds,
            unique_key,
            unique_until_start,
            retain_seconds,
            finished_ago_seconds,
        ),
    ).fetchone()
    assert row is not None
    return int(row[0])


def insert_jobs(conn: psycopg.Connection, count: int, kind: str = "noop", *, queue: str = "default") -> None:
    """Add many jobs whose argument `n` counts from 0."""
    conn.execute(
        """
        INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds)
        SELECT %s, %s, 'available', jsonb_build_object('n', n), 25, 600 FROM generate_series(0, %s - 1) n
        """,
        (kind, queue, count),
    )


def insert_worker(conn: psycopg.Connection, name: str = "worker-a", *, silent_seconds: float = 0) -> int:
    """Add a worker that was last heard of so long ago, and return its id."""
    worker_id = register_worker(conn, name=name, boot_id=uuid4(), app="test", queues=["default"], slots=1)
    conn.execute(
        "UPDATE sweephand.worker SET heartbeat_at = now() - make_interval(secs => %s) WHERE id = %s",
        (silent_seconds, worker_id),
    )
    return worker_id


def stored_job(conn: psycopg.Connection, job_id: int) -> StoredJob:
    """Return one job."""
    (job,) = stored_jobs(conn, [job_id])
    return job


def stored_jobs(conn: psycopg.Connection, job_ids: Sequence[int] | None = None) -> list[StoredJob]:
    """Return these jobs, or all, by id."""
    with conn.cursor(row_factory=class_row(StoredJob)) as cursor:
        return cursor.execute(
            """
            SELECT id, kind, state, attempt, claim_token::text, worker_id, finished_at, unique_key IS NOT NULL AS has_key,
                extract(epoch FROM scheduled_at - now())::float8 AS scheduled_in_seconds
            FROM sweephand.job WHERE %(ids)s::bigint[] IS NULL OR id = ANY (%(ids)s) ORDER BY id
            """,
            {"ids": None if job_ids is None else list(job_ids)},
        ).fetchall()


def stored_attempts(conn: psycopg.Connection, job_id: int) -> list[StoredAttempt]:
    """Return the attempts of a job that have ended, in the order of their ends."""
    with conn.cursor(row_factory=class_row(StoredAttempt)) as cursor:
        return cursor.execute(
            """
            SELECT job_id, attempt, outcome, error, traceback, worker_name,
                extract(epoch FROM ended_at - started_at)::float8 AS seconds
            FROM sweephand.job_attempt WHERE job_id = %s ORDER BY ended_at, started_at
            """,
            (job_id,),
        ).fetchall()


def count_by_state(conn: psycopg.Connection) -> dict[str, int]:
    """Return how many jobs there are in each state that has any."""
    rows = conn.execute("SELECT state, count(*) FROM sweephand.job GROUP BY state").fetchall()
    return {str(state): int(number) for state, number in rows}
