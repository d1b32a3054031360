"""Take jobs back from workers that fell silent and from attempts that outlived their time limit.

Called by the leader's lane, over an autocommit connection. Only running jobs are touched, each under its row lock and with
its state looked at again: a job that finished meanwhile stays as it is, and the silent worker's own finish, should it still
come, is stale.
"""

from dataclasses import dataclass

import psycopg
from psycopg.rows import class_row

from sweephand.model.backoff import MAX_BACKOFF_SECONDS

# How long after its time limit an attempt may take to be interrupted, recorded and committed by its own worker.
OVERTIME_SECONDS = 30.0

# attempt⁴ with ±10 %, as model.backoff has it; in float8, which no attempt number can overflow.
_RESCUE = """
WITH lost AS (
    SELECT job.id, job.attempt, job.claimed_at, job.worker_id, worker.name AS worker_name,
        CASE
            WHEN job.cancel_requested_at IS NOT NULL THEN 'cancelled'
            WHEN job.attempt >= job.max_attempts THEN 'discarded'
            ELSE 'retryable'
        END AS state,
        CASE
            WHEN worker.id IS NULL THEN 'the worker is gone'
            WHEN worker.heartbeat_at < now() - make_interval(secs => %(rescue_after_seconds)s)
                THEN format('the worker has not been heard of since %%s UTC',
                    to_char(worker.heartbeat_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'))
            ELSE format('the worker did not end the attempt at its time limit of %%s s', job.timeout_seconds)
        END AS error
    FROM sweephand.job LEFT JOIN sweephand.worker ON worker.id = job.worker_id
    WHERE job.state = 'running' AND (
        worker.id IS NULL
        OR worker.heartbeat_at < now() - make_interval(secs => %(rescue_after_seconds)s)
        OR extract(epoch FROM now() - job.claimed_at) > job.timeout_seconds + %(overtime_seconds)s)
    LIMIT %(limit)s
    FOR UPDATE OF job SKIP LOCKED
), written AS (
    UPDATE sweephand.job
    SET state = lost.state,
        finished_at = CASE WHEN lost.state = 'retryable' THEN NULL ELSE now() END,
        scheduled_at = CASE
            WHEN lost.state = 'retryable' THEN now() + make_interval(secs =>
                least(lost.attempt::float8 ^ 4, %(max_backoff_seconds)s) * (0.9 + 0.2 * random()))
            ELSE job.scheduled_at END,
        claim_token = NULL
    FROM lost
    WHERE job.id = ANY (ARRAY (SELECT id FROM lost)) AND job.id = lost.id AND job.attempt = lost.attempt AND job.state = 'running'
    RETURNING job.id, job.kind, job.queue, job.attempt, job.state, lost.claimed_at, lost.worker_id, lost.worker_name,
        lost.error
), recorded AS (
    INSERT INTO sweephand.job_attempt
        (job_id, attempt, started_at, ended_at, outcome, error, worker_id, worker_name)
    SELECT id, attempt, claimed_at, now(), 'lost', error, worker_id, worker_name FROM written
    ON CONFLICT DO NOTHING
)
SELECT id AS job_id, kind, queue, attempt, state, error, worker_name FROM written ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class RescuedJob:
    """A job taken back: which attempt was lost, why, and the state it is in now (retryable, discarded, cancelled)."""

    job_id: int
    kind: str
    queue: str
    attempt: int
    state: str
    error: str
    worker_name: str | None


@dataclass(frozen=True, slots=True)
class RescueReport:
    """What one rescue did. `is_complete` is False when the limit was reached and more may wait."""

    jobs: tuple[RescuedJob, ...]
    is_complete: bool


async def rescue(conn: psycopg.AsyncConnection, *, rescue_after_seconds: float, limit: int = 500) -> RescueReport:
    """Take back up to `limit` running jobs whose worker is silent or gone, or whose time limit has long passed.

    A worker is silent when its last heartbeat is older than `rescue_after_seconds`. The lost attempt is recorded and
    counts: the job is retryable after attempt⁴ seconds, or discarded if it was the last. Several leaders at once are
    safe: each job is rescued once.
    """
    async with conn.cursor(row_factory=class_row(RescuedJob)) as cursor:
        await cursor.execute(
            _RESCUE,
            {
                "rescue_after_seconds": rescue_after_seconds,
                "overtime_seconds": OVERTIME_SECONDS,
                "max_backoff_seconds": MAX_BACKOFF_SECONDS,
                "limit": limit,
            },
        )
        jobs = tuple(await cursor.fetchall())
    return RescueReport(jobs=jobs, is_complete=len(jobs) < limit)
