"""Write how attempts ended: one statement for many, each fenced by its claim."""

from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

import psycopg

from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.array_literals import array_literal

# Errors and tracebacks are NULL for most attempts: their arrays may be shorter, and unnest fills up with NULL.
# `id = ANY (ARRAY (…))` makes each outcome find its row by the primary key: the planner takes such an array for short. The
# join alone was planned as a scan of the table; a test of the plan watches over that.
# What a job asked for loses against a cancellation that was asked for meanwhile, unless the job is finished anyway.
FINISH = """
WITH ended AS (
    SELECT * FROM unnest(
        %(ids)s::bigint[], %(attempts)s::integer[], %(claim_tokens)s::uuid[], %(outcomes)s::text[],
        %(started)s::float8[], %(ended)s::float8[], %(delays)s::float8[], %(errors)s::text[], %(tracebacks)s::text[]
    ) AS ended (id, attempt, claim_token, outcome, started, ended, delay_seconds, error, traceback)
), written AS (
    UPDATE sweephand.job
    SET state = CASE
            WHEN ended.outcome = 'completed' THEN 'completed'
            WHEN ended.outcome = 'discarded' THEN 'discarded'
            WHEN ended.outcome = 'cancelled' OR job.cancel_requested_at IS NOT NULL THEN 'cancelled'
            WHEN ended.outcome = 'retried' THEN 'retryable'
            WHEN ended.outcome = 'snoozed' THEN 'scheduled'
            ELSE 'available' END,
        finished_at = CASE
            WHEN ended.outcome IN ('completed', 'discarded', 'cancelled') OR job.cancel_requested_at IS NOT NULL
            THEN now() END,
        attempt = job.attempt - CASE WHEN ended.outcome IN ('snoozed', 'interrupted') THEN 1 ELSE 0 END,
        scheduled_at = CASE
            WHEN ended.delay_seconds IS NULL THEN job.scheduled_at
            ELSE now() + make_interval(secs => ended.delay_seconds) END,
        claim_token = NULL
    FROM ended
    WHERE job.id = ANY (ARRAY (SELECT id FROM ended))
        AND job.id = ended.id AND job.attempt = ended.attempt AND job.claim_token = ended.claim_token
    RETURNING ended.*, job.state, job.worker_id
), recorded AS (
    INSERT INTO sweephand.job_attempt
        (job_id, attempt, started_at, ended_at, outcome, error, traceback, worker_id, worker_name)
    SELECT id, attempt, now() - make_interval(secs => %(now)s - started), now() - make_interval(secs => %(now)s - ended),
        CASE WHEN state = 'cancelled' THEN 'cancelled' ELSE outcome END, error, traceback, worker_id, %(worker_name)s
    FROM written
    ON CONFLICT DO NOTHING
)
SELECT ended.id FROM ended WHERE NOT EXISTS (SELECT FROM written WHERE written.id = ended.id)
"""


class FinishedAttempt(NamedTuple):
    """How one attempt ended. `started` and `ended` are readings of one monotonic clock, in seconds.

    `delay_seconds` is the wait before a retry or the length of a snooze. `error` and `traceback` must be text that
    PostgreSQL can store (`worker.failures` sees to it). A named tuple, for the same reason as ClaimedJob.
    """

    job_id: int
    attempt: int
    claim_token: str
    outcome: AttemptOutcome
    started: float
    ended: float
    delay_seconds: float | None = None
    error: str | None = None
    traceback: str | None = None


def finish(conn: psycopg.Connection, finished: Sequence[FinishedAttempt], *, worker_name: str, monotonic_now: float) -> list[int]:
    """Write the end of these attempts and return the ids of the stale ones, which changed nothing.

    One statement and, on an autocommit connection, one commit. An attempt is stale when its job has been given to
    another claim or ended by someone else. Moments are the database's: its now, less the monotonic age of each.
    """
    if not finished:
        return []
    bound = finish_values(finished, worker_name=worker_name, monotonic_now=monotonic_now)
    return [row[0] for row in conn.execute(FINISH, bound).fetchall()]


def finish_values(finished: Sequence[FinishedAttempt], *, worker_name: str, monotonic_now: float) -> dict[str, object]:
    """Return what FINISH asks for; `finished` has at least one attempt."""
    # In the order of ids, so that two statements that meet in some rows wait for each other instead of deadlocking.
    ids, attempts, claim_tokens, outcomes, started, ended, delays, errors, tracebacks = zip(
        *sorted(finished, key=itemgetter(0)), strict=True
    )
    return {
        "ids": array_literal(ids),
        "attempts": array_literal(attempts),
        "claim_tokens": array_literal(claim_tokens),
        "outcomes": array_literal(outcomes),
        "started": array_literal(started),
        "ended": array_literal(ended),
        "delays": _unless_empty(delays),
        "errors": _unless_empty(errors),
        "tracebacks": _unless_empty(tracebacks),
        "now": monotonic_now,
        "worker_name": worker_name,
    }


def _unless_empty(column: tuple[object, ...]) -> list[object]:
    return [] if all(item is None for item in column) else list(column)
