"""Delete what has been kept long enough, in small batches that never hold a table.

Called by the leader's lane, over an autocommit connection: each batch is a transaction of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import LiteralString

import psycopg

from sweephand.model.states import JobState

_DELETE_JOBS: LiteralString = """
WITH due AS MATERIALIZED (
    SELECT id, finished_at FROM sweephand.job
    WHERE {which} AND (finished_at, id) > (%(after_finished_at)s, %(after_id)s)
        AND (cool_down_seconds IS NULL OR finished_at < now() - make_interval(secs => cool_down_seconds))
    ORDER BY finished_at, id LIMIT %(batch_size)s
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM sweephand.job WHERE id = ANY (ARRAY (SELECT id FROM due))
), gone_attempts AS (
    DELETE FROM sweephand.job_attempt WHERE job_id = ANY (ARRAY (SELECT id FROM due))
)
SELECT finished_at, id FROM due ORDER BY finished_at, id
"""
# The state is named twice: once to fit the index's predicate, whatever the planner can prove.
_BY_STATE: LiteralString = _DELETE_JOBS.replace(
    "{which}",
    """state IN ('completed', 'discarded', 'cancelled') AND state = %(state)s AND retain_seconds IS NULL
        AND finished_at < now() - make_interval(secs => %(retention_seconds)s)""",
)
_BY_KIND: LiteralString = _DELETE_JOBS.replace(
    "{which}",
    """state IN ('completed', 'discarded', 'cancelled') AND retain_seconds IS NOT NULL
        AND extract(epoch FROM now() - finished_at) > retain_seconds""",
)
_DELETE_TICKS: LiteralString = """
DELETE FROM sweephand.tick WHERE id = ANY (ARRAY (
    SELECT id FROM sweephand.tick
    WHERE planned_at < now() - make_interval(secs => %s) ORDER BY planned_at LIMIT %s FOR UPDATE SKIP LOCKED))
"""
_DELETE_AUDIT: LiteralString = """
DELETE FROM sweephand.audit WHERE id = ANY (ARRAY (
    SELECT id FROM sweephand.audit
    WHERE at < now() - make_interval(secs => %s) ORDER BY at LIMIT %s FOR UPDATE SKIP LOCKED))
"""
# A worker that was not heard of for an hour has long lost its jobs; its name stays in the attempts.
_DELETE_WORKERS = """
DELETE FROM sweephand.worker WHERE heartbeat_at < now() - interval '1 hour'
    AND NOT EXISTS (SELECT FROM sweephand.job WHERE job.worker_id = worker.id AND job.state = 'running')
"""
_HOUR_SECONDS = 3600.0
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class RetentionReport:
    """What one run deleted. `is_complete` is False when a bound on the batches was reached and more is due."""

    jobs: int
    ticks: int
    workers: int
    is_complete: bool
    audit_entries: int = 0


async def retention(
    conn: psycopg.AsyncConnection,
    *,
    completed_hours: float,
    cancelled_hours: float,
    discarded_hours: float,
    tick_days: float,
    audit_days: float,
    batch_size: int = 1_000,
    max_batches: int = 100,
) -> RetentionReport:
    """Delete finished jobs with their attempts, ticks, workers and audit entries that are past their time.

    A job is kept as long as its kind says (retain_seconds), else as long as its state says. At most `max_batches`
    batches of `batch_size` rows of each sort.
    """
    jobs, is_complete = await _delete_jobs(conn, _BY_KIND, {"batch_size": batch_size}, max_batches=max_batches)
    hours = {
        JobState.COMPLETED: completed_hours,
        JobState.CANCELLED: cancelled_hours,
        JobState.DISCARDED: discarded_hours,
    }
    for state, kept_hours in hours.items():
        bound = {"state": state.value, "retention_seconds": kept_hours * _HOUR_SECONDS, "batch_size": batch_size}
        deleted, is_done = await _delete_jobs(conn, _BY_STATE, bound, max_batches=max_batches)
        jobs, is_complete = jobs + deleted, is_complete and is_done
    bounds = {"batch_size": batch_size, "max_batches": max_batches}
    ticks, are_ticks_done = await _delete_older(conn, _DELETE_TICKS, days=tick_days, **bounds)
    audit_entries, is_audit_done = await _delete_older(conn, _DELETE_AUDIT, days=audit_days, **bounds)
    workers = (await conn.execute(_DELETE_WORKERS)).rowcount
    is_complete = is_complete and are_ticks_done and is_audit_done
    return RetentionReport(jobs=jobs, ticks=ticks, workers=workers, is_complete=is_complete, audit_entries=audit_entries)


async def _delete_older(
    conn: psycopg.AsyncConnection, statement: LiteralString, *, days: float, batch_size: int, max_batches: int
) -> tuple[int, bool]:
    deleted = 0
    for _ in range(max_batches):
        batch = (await conn.execute(statement, (days * _DAY_SECONDS, batch_size))).rowcount
        deleted += batch
        if batch < batch_size:
            return deleted, True
    return deleted, False


async def _delete_jobs(
    conn: psycopg.AsyncConnection, statement: LiteralString, bound: Mapping[str, object], *, max_batches: int
) -> tuple[int, bool]:
    """Walk the index once: each batch goes on behind the last, so kept rows in between are passed over only once."""
    deleted = 0
    after: tuple[datetime, int] = (datetime.min.replace(tzinfo=UTC), 0)
    for _ in range(max_batches):
        rows = await (await conn.execute(statement, {**bound, "after_finished_at": after[0], "after_id": after[1]})).fetchall()
        deleted += len(rows)
        if len(rows) < int(str(bound["batch_size"])):
            return deleted, True
        after = (rows[-1][0], rows[-1][1])
    return deleted, False
