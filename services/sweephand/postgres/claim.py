"""Give jobs to a worker, and take back those that it did not start.

A claim is one statement for many jobs. Each claim has a token of its own, a UUID that the client chose: whoever writes
about an attempt later must show it, so an attempt that was taken away cannot change anything.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import psycopg
from psycopg.rows import args_row

from sweephand.postgres.array_literals import array_literal, names_literal

# `id = ANY(ARRAY(…))` and not a join: a join with the subquery was planned as a sequential scan of the whole table.
# The order is that of the index job_claimable, so the first claimable rows are the first that the scan meets.
# set_config makes this one commit not wait for the disk, so that the job starts sooner: docs/adr/0006 says what that can cost.
_CLAIM = """
UPDATE sweephand.job
SET state = 'running', attempt = attempt + 1, claim_token = %(claim_token)s::uuid, worker_id = %(worker_id)s,
    claimed_at = now(), unique_key = CASE WHEN unique_until_start THEN NULL ELSE unique_key END
WHERE (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
    AND id = ANY (ARRAY (
        SELECT id FROM sweephand.job
        WHERE queue = %(queue)s AND state IN ('scheduled', 'available', 'retryable')
            AND scheduled_at <= now() AND kind = ANY (%(kinds)s::text[]){unless_held_up}
        ORDER BY scheduled_at, id LIMIT {limit}
        FOR UPDATE SKIP LOCKED))
RETURNING id, kind, args::text, attempt, max_attempts, timeout_seconds, tick_id, created_at,
    extract(epoch FROM now() - scheduled_at)::float8, trace_context::text
"""
CLAIM = _CLAIM.format(
    unless_held_up="""
            AND NOT EXISTS (
                SELECT FROM sweephand.queue
                WHERE name = %(queue)s AND (paused_at IS NOT NULL OR concurrency_limit IS NOT NULL))""",
    limit="%(limit)s",
)
_CLAIM_WITHIN_LIMIT = _CLAIM.format(
    unless_held_up="",
    limit="""least(%(limit)s, greatest(0, %(concurrency_limit)s - (
            SELECT count(*) FROM sweephand.job WHERE queue = %(queue)s AND state = 'running')))""",
)
_LOCK_LIMIT = """
SELECT concurrency_limit FROM sweephand.queue
WHERE name = %s AND paused_at IS NULL AND concurrency_limit IS NOT NULL FOR UPDATE
"""
# A job that was to be cancelled meanwhile ends here: nobody else would look at the request.
_GIVE_BACK = """
    SET state = CASE WHEN job.cancel_requested_at IS NULL THEN 'available' ELSE 'cancelled' END,
        finished_at = CASE WHEN job.cancel_requested_at IS NULL THEN NULL ELSE now() END,
        attempt = job.attempt - 1, claim_token = NULL, worker_id = NULL, claimed_at = NULL
"""
_NOTIFY = """
SELECT count(*) FROM given_back, LATERAL (SELECT pg_notify('sweephand.' || given_back.queue, '')) AS notified
"""
_RELEASE = f"""
WITH held AS (
    SELECT * FROM unnest(%s::bigint[], %s::integer[], %s::uuid[]) AS held (id, attempt, claim_token)
), given_back AS (
    UPDATE sweephand.job {_GIVE_BACK} FROM held
    WHERE job.id = ANY (ARRAY (SELECT id FROM held))
        AND job.id = held.id AND job.attempt = held.attempt AND job.claim_token = held.claim_token
    RETURNING job.queue
)
{_NOTIFY}
"""  # noqa: S608 - made of constants
_RELEASE_CLAIM = f"""
WITH given_back AS (
    UPDATE sweephand.job {_GIVE_BACK}
    WHERE job.worker_id = %s AND job.state = 'running' AND job.claim_token = %s::uuid
    RETURNING job.queue
)
{_NOTIFY}
"""


class ClaimedJob(NamedTuple):
    """A job that this worker may run now. `args` is the JSON text as stored: it is decoded where the job runs.

    A named tuple and not a dataclass: one is made for every job, and a tuple costs a third.
    """

    job_id: int
    kind: str
    args: str
    attempt: int
    max_attempts: int
    timeout_seconds: float
    tick_id: int | None
    created_at: datetime
    waited_seconds: float
    trace_context: str | None = None


class HeldAttempt(NamedTuple):
    """What proves that an attempt is held: the job, the number of the attempt and the token of its claim."""

    job_id: int
    attempt: int
    claim_token: str


def claim(
    conn: psycopg.Connection,
    *,
    queue: str,
    kinds: Sequence[str],
    limit: int,
    worker_id: int,
    claim_token: str,
    is_queue_limited: bool = False,
) -> list[ClaimedJob]:
    """Claim up to `limit` due jobs of one queue, the longest due first, and count one attempt for each.

    Jobs of other kinds than `kinds`, of a paused queue, and those that another worker is claiming are passed over.
    On an autocommit connection this is one statement and one commit. With `is_queue_limited` the queue's
    concurrency_limit holds across all workers, in a transaction that takes the queue's row first; without it, a queue
    that has a limit gives nothing.
    """
    bound = {
        "queue": queue,
        "kinds": names_literal(kinds),
        "limit": limit,
        "worker_id": worker_id,
        "claim_token": claim_token,
    }
    if is_queue_limited:
        return _claim_within_limit(conn, bound)
    with conn.cursor(binary=True, row_factory=args_row(ClaimedJob)) as cursor:
        return _longest_due_first(cursor.execute(CLAIM, bound).fetchall())


def _claim_within_limit(conn: psycopg.Connection, bound: dict[str, object]) -> list[ClaimedJob]:
    """Claim under the lock of the queue's row: the count of running jobs is only true while nobody else claims."""
    with conn.transaction(), conn.cursor(binary=True, row_factory=args_row(ClaimedJob)) as cursor:
        limit = conn.execute(_LOCK_LIMIT, [bound["queue"]]).fetchone()
        if limit is None:
            return []
        # A statement of its own: its snapshot is newer than the lock, so it sees what the last holder has claimed.
        return _longest_due_first(cursor.execute(_CLAIM_WITHIN_LIMIT, {**bound, "concurrency_limit": limit[0]}).fetchall())


def _longest_due_first(claimed: list[ClaimedJob]) -> list[ClaimedJob]:
    """Sort what RETURNING gives in the order of the update."""
    return sorted(claimed, key=lambda job: (-job.waited_seconds, job.job_id))


def release(conn: psycopg.Connection, held: Iterable[HeldAttempt]) -> int:
    """Give back jobs that were claimed but not started, as if they had not been claimed; return how many.

    Other workers are notified. Attempts that are no longer held are passed over. A job that is unique until its start
    has already given its key away and does not get it back.
    """
    columns = list(zip(*sorted(held), strict=True))
    if not columns:
        return 0
    return _count(conn.execute(_RELEASE, [array_literal(column) for column in columns]).fetchone())


def release_claim(conn: psycopg.Connection, *, worker_id: int, claim_token: str) -> int:
    """Give back every job of one claim whose answer never arrived; return how many."""
    return _count(conn.execute(_RELEASE_CLAIM, (worker_id, claim_token)).fetchone())


def _count(row: tuple[object, ...] | None) -> int:
    return int(str(row[0])) if row else 0
