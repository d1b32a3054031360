"""Dispatch one tick: scan a sweep's rows and enqueue a unique job for each that has none, in one transaction.

The transaction: hold the term (leader.py), then one statement that moves the sweep on, scans, enqueues and writes the tick
with its counts. Whatever kills it leaves nothing; a replay finds the sweep moved on and adds nothing.
"""

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg.rows import class_row

from sweephand.model.errors import ConflictError
from sweephand.model.ticks import DueTick, Step, TickOutcome
from sweephand.postgres.leader import Term, fence
from sweephand.postgres.ledger import record_skipped
from sweephand.postgres.moments import utc
from sweephand.postgres.scan import considered_sql, considered_values
from sweephand.postgres.unique_keys import cool_down_seconds
from sweephand.sweep import Sweep

# Read it from the top: each part takes the rows of the one before. They have no order in time otherwise: `moved` is carried out
# when its row is asked for, after the scan. So the transaction's now() is when the dispatch started.
_STATEMENT = """
WITH moved AS (       -- the sweep goes on to its next planned time; no row: somebody has dispatched this tick already
    UPDATE sweephand.sweep SET next_tick_at = %(next_tick_at)s,
        run_requested_at = nullif(run_requested_at, %(planned_at)s)
    WHERE app = %(app)s AND name = %(sweep)s AND next_tick_at = %(expected_tick_at)s
    RETURNING nextval('sweephand.tick_id_seq') AS tick_id, now() AS started_at
), {considered}, numbered AS (      -- ids in the sweep's order, so that workers take the oldest rows first
    SELECT nextval('sweephand.job_id_seq') AS id, args, unique_key
    FROM (SELECT args, unique_key FROM considered WHERE is_new ORDER BY position) AS ordered
), inserted AS (      -- written in the order of the keys, so that two writers cannot deadlock
    INSERT INTO sweephand.job (id, kind, queue, state, args, max_attempts, timeout_seconds, retain_seconds,
                               unique_key, unique_until_start, cool_down_seconds, tick_id)
    SELECT id, %(kind)s, %(queue)s, 'available', args, %(max_attempts)s, %(timeout)s, %(retain)s,
           unique_key, %(until_start)s, %(cool_down)s, tick_id
    FROM numbered CROSS JOIN moved ORDER BY unique_key
    ON CONFLICT (unique_key)
        WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'available', 'running', 'retryable')
        DO NOTHING
    RETURNING id
), counts AS (
    SELECT (SELECT count(*) FROM inserted)::integer AS enqueued,
           count(*) FILTER (WHERE refusal IS NOT NULL)::integer AS refused,
           count(*)::integer AS considered,
           (SELECT count(*) FROM keyed) = %(scan_bound)s AND coalesce(max(new_so_far), 0) < %(limit)s AS scan_truncated,
           (array_agg(refusal || ' in ' || args ORDER BY position) FILTER (WHERE refusal IS NOT NULL))[1:5] AS refusals
    FROM considered
), recorded AS (
    INSERT INTO sweephand.tick (id, app, sweep, planned_at, reason, outcome, cause, started_at, ended_at, enqueued,
                                skipped_duplicates, refused, scan_truncated, error, term, dispatcher)
    SELECT tick_id, %(app)s, %(sweep)s, %(planned_at)s, %(reason)s,
           CASE WHEN considered > 0 THEN 'ok' ELSE 'empty' END, %(cause)s,
           started_at, clock_timestamp(), enqueued, considered - enqueued - refused, refused, scan_truncated,
           array_to_string(refusals, E'\n'), %(term)s, %(dispatcher)s
    FROM counts CROSS JOIN moved
    RETURNING id, outcome, started_at, ended_at, enqueued, skipped_duplicates, refused, scan_truncated, error
), notified AS (
    SELECT pg_notify('sweephand.' || %(queue)s, '') FROM recorded
    WHERE enqueued > 0 AND current_setting('sweephand.notify', true) IS DISTINCT FROM 'off'
)
SELECT recorded.* FROM recorded LEFT JOIN notified ON true
"""


@dataclass(frozen=True, slots=True)
class DispatchReport:
    """Say what one tick did. Logs, metrics and the ledger's row all come from these numbers.

    `error` holds the first refused rows, one a line, when `refused` is not 0.
    """

    sweep: str
    tick_id: int
    due: DueTick
    outcome: TickOutcome
    started_at: datetime
    ended_at: datetime
    enqueued: int
    skipped_duplicates: int
    refused: int
    scan_truncated: bool
    error: str | None


@dataclass(frozen=True, slots=True)
class _TickRow:
    id: int
    outcome: str
    started_at: datetime
    ended_at: datetime
    enqueued: int
    skipped_duplicates: int
    refused: int
    scan_truncated: bool
    error: str | None


async def dispatch(
    connection: psycopg.AsyncConnection, term: Term, *, sweep: Sweep, step: Step, due: DueTick, expected_tick_at: datetime
) -> DispatchReport:
    """Carry out the step's dispatch in a transaction of its own, and return what it did.

    `expected_tick_at` is the sweep's next_tick_at that the step was planned from.

    Raises:
        FencedError: a later term has begun.
        ConflictError: this tick has been dispatched already.
        psycopg.Error: the scan or the connection failed; nothing was written, unless the answer to COMMIT was lost.
    """
    async with connection.transaction(), connection.cursor(row_factory=class_row(_TickRow)) as cursor:
        await fence(connection, term, statement_timeout=sweep.statement_timeout)
        try:
            await cursor.execute(
                _STATEMENT.replace("{considered}", considered_sql(sweep)),
                _values(term, sweep, step=step, due=due, expected_tick_at=expected_tick_at),
            )
        except psycopg.errors.UniqueViolation as error:
            raise ConflictError(f"sweep {sweep.name}: {due.planned_at.isoformat()} has been dispatched already") from error
        row = await cursor.fetchone()
        if row is None:
            raise ConflictError(f"sweep {sweep.name} is no longer at {expected_tick_at.isoformat()}; plan it again")
        await record_skipped(connection, term, sweep=sweep.name, step=step, made_up_by=row.id)
    return DispatchReport(
        sweep=sweep.name,
        tick_id=row.id,
        due=due,
        outcome=TickOutcome(row.outcome),
        started_at=utc(row.started_at),
        ended_at=utc(row.ended_at),
        enqueued=row.enqueued,
        skipped_duplicates=row.skipped_duplicates,
        refused=row.refused,
        scan_truncated=row.scan_truncated,
        error=row.error or None,
    )


def _values(term: Term, sweep: Sweep, *, step: Step, due: DueTick, expected_tick_at: datetime) -> dict[str, object]:
    job = sweep.job
    return {
        "app": term.name,
        "sweep": sweep.name,
        "term": term.number,
        "dispatcher": term.holder,
        "planned_at": due.planned_at,
        "next_tick_at": step.next_tick_at,
        "expected_tick_at": expected_tick_at,
        "reason": due.reason.value,
        "cause": due.cause.value if due.cause else None,
        **considered_values(sweep),
        "queue": job.queue,
        "cool_down": cool_down_seconds(job.unique),
        "until_start": job.unique.mode == "until_start",
        "max_attempts": job.max_attempts,
        "timeout": job.timeout.total_seconds(),
        "retain": None if job.retain is None else job.retain.total_seconds(),
    }
