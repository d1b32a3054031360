"""Run jobs, let time pass and look for jobs inside of one transaction that is the caller's, as tests do.

Plans for callers_transaction.run. What a worker's statements do to a job, these do too; only what many workers need of each
other is left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from uuid import uuid4

from sweephand.postgres.callers_transaction import Plan, Statement
from sweephand.postgres.claim import ClaimedJob
from sweephand.postgres.finish import FINISH, FinishedAttempt, finish_values
from sweephand.postgres.scan import considered_sql, considered_values, scan_sql
from sweephand.sweep import Sweep

# In one transaction now() stands still. What is available is due in any case, also if others enqueued it since.
_CLAIM = Statement("""
WITH next AS (
    SELECT id FROM sweephand.job
    WHERE state IN ('scheduled', 'available', 'retryable') AND kind = ANY (CAST(:kinds AS text[]))
        AND CASE WHEN CAST(:job_id AS bigint) IS NULL THEN state = 'available' OR scheduled_at <= now()
                 ELSE id = CAST(:job_id AS bigint) END
        AND queue = coalesce(CAST(:queue AS text), queue)
    ORDER BY scheduled_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE sweephand.job SET state = 'running', attempt = attempt + 1, claim_token = CAST(:claim_token AS uuid),
        claimed_at = now(), worker_id = NULL, unique_key = CASE WHEN unique_until_start THEN NULL ELSE unique_key END
    FROM next WHERE job.id = next.id
    RETURNING job.id, kind, args, attempt, max_attempts, timeout_seconds, tick_id, created_at, queue
)
SELECT id, kind, CAST(args AS text), attempt, max_attempts, timeout_seconds, tick_id, created_at, queue FROM claimed
""")
_FINISH = Statement(FINISH, is_psycopg=True)
_NEXT_WAIT = Statement("""
SELECT min(scheduled_at) - now() FROM sweephand.job
WHERE state IN ('scheduled', 'retryable') AND kind = ANY (CAST(:kinds AS text[]))
    AND queue = coalesce(CAST(:queue AS text), queue)
""")
_LET_PASS = Statement("""
WITH moved AS (
    UPDATE sweephand.job SET created_at = created_at - CAST(:by AS interval), scheduled_at = scheduled_at - CAST(:by AS interval),
        claimed_at = claimed_at - CAST(:by AS interval), finished_at = finished_at - CAST(:by AS interval)
    RETURNING 1
)
SELECT count(*) FROM moved
""")
_WAITING = Statement("""
SELECT id, queue, CAST(args AS text), scheduled_at, scheduled_at - created_at FROM sweephand.job
WHERE kind = ANY (CAST(:kinds AS text[])) AND state IN ('scheduled', 'available', 'retryable') ORDER BY id
""")


@dataclass(frozen=True, slots=True)
class InlineClaim:
    """Be a job that was claimed for an attempt in this process."""

    job: ClaimedJob
    queue: str
    claim_token: str


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """Be a job that no worker has taken; `args` is JSON text, `delay` the time from its creation to its start."""

    job_id: int
    queue: str
    args: str
    scheduled_at: datetime
    delay: timedelta


def claim_next(kinds: Iterable[str], *, queue: str | None = None, job_id: int | None = None) -> Plan[InlineClaim | None]:
    """Claim the job that is due the longest, of the queue if one is given, or the very job of this id whenever it is due."""
    token = str(uuid4())
    rows = yield _CLAIM, {"kinds": list(kinds), "queue": queue, "job_id": job_id, "claim_token": token}
    if not rows:
        return None
    *job, found_queue = rows[0]
    return InlineClaim(ClaimedJob._make((*job, 0.0, None)), queue=str(found_queue), claim_token=token)


def finish_one(finished: FinishedAttempt) -> Plan[bool]:
    """Write how the attempt ended; return whether it still held its job."""
    stale = yield _FINISH, finish_values([finished], worker_name="sweephand.testing", monotonic_now=monotonic())
    return not stale


def next_wait(kinds: Iterable[str], *, queue: str | None) -> Plan[timedelta | None]:
    """Return how long it is until the next job that is not due becomes due; None if there is none."""
    ((wait,),) = yield _NEXT_WAIT, {"kinds": list(kinds), "queue": queue}
    return wait if isinstance(wait, timedelta) else None


def let_pass(by: timedelta) -> Plan[None]:
    """Move every moment of every job into the past, as if this much time had gone by."""
    yield _LET_PASS, {"by": by}


def waiting_jobs(kinds: Iterable[str]) -> Plan[Sequence[WaitingJob]]:
    """Return the jobs of these kinds that no worker has taken, in the order of their ids."""
    rows = yield _WAITING, {"kinds": list(kinds)}
    return [WaitingJob(*row) for row in rows]  # type: ignore[arg-type]  # as _WAITING has them


def scanned_rows(sweep: Sweep) -> Plan[Sequence[tuple[str, str | None]]]:
    """Return what the sweep's SELECT finds, up to its scan bound: the arguments as JSON text, and why they are refused."""
    text = f"SELECT args::text, refusal FROM (\n{scan_sql(sweep)}\n) AS rows LIMIT %(scan_bound)s"  # noqa: S608 - the sweep's own SELECT
    rows = yield Statement(text, is_psycopg=True), considered_values(sweep)
    return [_text_row(row) for row in rows]


def considered_rows(sweep: Sweep) -> Plan[Sequence[tuple[str, str | None]]]:
    """Return the rows that a tick would consider: those up to the last new one that the limit allows."""
    text = f"WITH {considered_sql(sweep)} SELECT args::text, refusal FROM considered ORDER BY position"  # noqa: S608 - see above
    rows = yield Statement(text, is_psycopg=True), considered_values(sweep)
    return [_text_row(row) for row in rows]


def _text_row(row: Sequence[object]) -> tuple[str, str | None]:
    args, refusal = row
    return str(args), None if refusal is None else str(refusal)
