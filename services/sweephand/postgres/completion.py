"""Complete a job in the transaction of its own writes, so that both are committed or neither.

What the job does in this database is then done exactly once: an attempt that was taken away finds no row to complete, and its
writes go back with it. The worker's own finish comes after the transaction has ended, one way or the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

import psycopg

from sweephand.context import JobContext
from sweephand.model.errors import StaleAttemptError
from sweephand.postgres.array_literals import array_literal
from sweephand.postgres.callers_transaction import Plan, Statement
from sweephand.postgres.claim import HeldAttempt

# By the wall clock: the caller's transaction may have begun long before the attempt ends.
_COMPLETE = Statement("""
WITH completed AS (
    UPDATE sweephand.job SET state = 'completed', finished_at = clock_timestamp(), claim_token = NULL
    WHERE id = :job_id AND attempt = :attempt AND claim_token = CAST(:claim_token AS uuid)
    RETURNING id, attempt, worker_id, finished_at
), recorded AS (
    INSERT INTO sweephand.job_attempt (job_id, attempt, started_at, ended_at, outcome, worker_id, worker_name)
    SELECT id, attempt, finished_at - make_interval(secs => CAST(:seconds AS float8)), finished_at, 'completed', worker_id,
        (SELECT name FROM sweephand.worker WHERE worker.id = completed.worker_id)
    FROM completed
)
SELECT id FROM completed
""")
# Two statements, in this order: whoever holds the lock no longer has ended, and the second one sees what it committed.
_UNLOCKED = "SELECT id FROM sweephand.job WHERE id = ANY (%s::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED"
_COMMITTED = """
SELECT job_id FROM sweephand.job_attempt JOIN unnest(%s::bigint[], %s::integer[]) AS held (job_id, attempt)
    USING (job_id, attempt)
WHERE outcome = 'completed'
"""


@dataclass(frozen=True, slots=True)
class Completions:
    """Say of jobs that completed themselves, by id, whose transaction was committed and whose is still open."""

    committed: frozenset[int]
    open: frozenset[int]


def completing(context: JobContext) -> Plan[None]:
    """Complete the job in the caller's transaction; see JobContext.complete."""
    rows = yield (
        _COMPLETE,
        {
            "job_id": context.job_id,
            "attempt": context.attempt,
            "claim_token": context.claim.claim_token,
            "seconds": monotonic() - context.claim.started,
        },
    )
    if not rows:
        raise StaleAttemptError(
            f"job {context.job_id} is no longer held by its attempt {context.attempt}: it was rescued, or has ended; let this "
            "error roll the transaction back, another attempt does or did the work"
        )
    context.claim.is_completing = True


def completions(conn: psycopg.Connection, held: Sequence[HeldAttempt]) -> Completions:
    """Look what became of the transactions in which these attempts completed their jobs. Waits for none of them."""
    ids = array_literal(attempt.job_id for attempt in held)
    unlocked = {row[0] for row in conn.execute(_UNLOCKED, [ids]).fetchall()}
    attempts = array_literal(attempt.attempt for attempt in held)
    committed = frozenset(row[0] for row in conn.execute(_COMMITTED, [ids, attempts]).fetchall())
    still_open = {attempt.job_id for attempt in held} - unlocked - committed
    return Completions(committed=committed, open=frozenset(still_open))
