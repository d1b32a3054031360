"""Enqueue jobs in the caller's open transaction: one statement, one round trip, for one job or for thousands.

The server computes the unique key; a duplicate inserts nothing and is answered with the id of the unfinished job. NOTIFY goes
out with the caller's commit, and the caller's rollback takes all of it back. `ALTER DATABASE … SET sweephand.notify = off`
silences NOTIFY; workers then find jobs by polling.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ParamSpec, overload

import psycopg

from sweephand.context import tell_enqueued
from sweephand.job import Job
from sweephand.model.errors import ArgumentsError, ConflictError
from sweephand.postgres.callers_transaction import AnyAsync, AnySync, Plan, Statement, run
from sweephand.postgres.unique_keys import cool_down_seconds, held_keys, unless_cooling
from sweephand.tracing import trace_context

P = ParamSpec("P")

MOST_AT_ONCE = 10_000

# A duplicate that commits while the statement runs is invisible to its snapshot: no row comes back, and the next try sees
# it. It can finish and be replaced meanwhile, hence several tries, and an error if even they find nothing.
_TRIES = 5

_ONE_TEXT = """
WITH given AS (
    SELECT CASE WHEN CAST(:is_unique AS boolean) THEN
               sweephand.unique_key(CAST(:kind AS text), CAST(:args AS jsonb), CAST(:counted AS text[]))
           END AS unique_key,
           coalesce(CAST(:scheduled_at AS timestamptz), now() + make_interval(secs => CAST(:delay AS float8)))
               AS scheduled_at
), inserted AS (
    INSERT INTO sweephand.job (kind, queue, args, state, max_attempts, timeout_seconds, retain_seconds,
                               unique_key, unique_until_start, cool_down_seconds, scheduled_at, trace_context)
    SELECT CAST(:kind AS text), CAST(:queue AS text), CAST(:args AS jsonb),
           CASE WHEN scheduled_at > now() THEN 'scheduled' ELSE 'available' END,
           CAST(:max_attempts AS integer), CAST(:timeout AS float8), CAST(:retain AS float8),
           unique_key, CAST(:until_start AS boolean), CAST(:cool_down AS float8), coalesce(scheduled_at, now()),
           CAST(:trace_context AS jsonb)
    FROM given AS firsts {unless_cooling}
    ON CONFLICT (unique_key)
        WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'available', 'running', 'retryable')
        DO NOTHING
    RETURNING id, queue, state
), notified AS (
    SELECT pg_notify('sweephand.' || queue, '') FROM inserted
    WHERE state = 'available' AND current_setting('sweephand.notify', true) IS DISTINCT FROM 'off'
)
SELECT id, false AS is_duplicate FROM inserted LEFT JOIN notified ON true
UNION ALL
SELECT held.job_id, true FROM {held_keys} AS held JOIN given USING (unique_key)
WHERE NOT EXISTS (SELECT FROM inserted)
LIMIT 1
"""

# Windows and a hashed IN instead of joins: nothing is known of how long an array is, and a nested loop over 10,000 items
# would take seconds.
_MANY_TEXT = """
WITH keyed AS (
    SELECT position, args, CASE WHEN CAST(:is_unique AS boolean) THEN
               sweephand.unique_key(CAST(:kind AS text), args, CAST(:counted AS text[])) END AS unique_key
    FROM (SELECT position, CAST(item AS jsonb) AS args
          FROM unnest(CAST(:args AS text[])) WITH ORDINALITY AS listed (item, position)) AS parsed
), given AS (         -- of equal items in the batch only the first can become a job
    SELECT keyed.*, CASE WHEN unique_key IS NULL THEN position ELSE min(position) OVER (PARTITION BY unique_key) END
               AS first_position
    FROM keyed
), numbered AS (      -- ids in the caller's order, so that workers take the jobs in it
    SELECT given.*, CASE WHEN position = first_position
               THEN nextval(pg_get_serial_sequence('sweephand.job', 'id')) END AS new_id
    FROM (SELECT * FROM given ORDER BY position) AS given
), moment AS (
    SELECT coalesce(CAST(:scheduled_at AS timestamptz), now() + make_interval(secs => CAST(:delay AS float8)))
        AS scheduled_at
), inserted AS (      -- written in the order of the keys, so that two writers cannot deadlock
    INSERT INTO sweephand.job (id, kind, queue, args, state, max_attempts, timeout_seconds, retain_seconds,
                               unique_key, unique_until_start, cool_down_seconds, scheduled_at, trace_context)
    SELECT new_id, CAST(:kind AS text), CAST(:queue AS text), args,
           CASE WHEN scheduled_at > now() THEN 'scheduled' ELSE 'available' END,
           CAST(:max_attempts AS integer), CAST(:timeout AS float8), CAST(:retain AS float8),
           unique_key, CAST(:until_start AS boolean), CAST(:cool_down AS float8), coalesce(scheduled_at, now()),
           CAST(:trace_context AS jsonb)
    FROM (SELECT * FROM numbered WHERE new_id IS NOT NULL) AS firsts CROSS JOIN moment {unless_cooling}
    ORDER BY unique_key, new_id
    ON CONFLICT (unique_key)
        WHERE unique_key IS NOT NULL AND state IN ('scheduled', 'available', 'running', 'retryable')
        DO NOTHING
    RETURNING id, state
), notified AS (
    SELECT pg_notify('sweephand.' || CAST(:queue AS text), '')
    WHERE EXISTS (SELECT FROM inserted WHERE state = 'available')
        AND current_setting('sweephand.notify', true) IS DISTINCT FROM 'off'
), answered AS (
    SELECT position, unique_key, batch_id, batch_id IN (SELECT id FROM inserted) AS is_inserted,
           position <> first_position AS is_repeated
    FROM (SELECT numbered.*, max(new_id) OVER (PARTITION BY first_position) AS batch_id FROM numbered) AS batched
)
SELECT position, CASE WHEN is_inserted THEN batch_id ELSE held.job_id END AS id, is_repeated OR NOT is_inserted AS is_duplicate
FROM answered
LEFT JOIN LATERAL (   -- with LIMIT, for an index look-up each: a join was planned as a scan of all unfinished jobs
    SELECT job_id FROM {held_keys} AS holding
    WHERE NOT is_inserted AND holding.unique_key = answered.unique_key LIMIT 1) AS held ON true
LEFT JOIN notified ON true
ORDER BY position
"""


def _statement(text: str, *, has_cool_down: bool) -> Statement:
    text = text.replace("{held_keys}", held_keys(has_cool_down=has_cool_down))
    return Statement(text.replace("{unless_cooling}", unless_cooling("firsts", has_cool_down=has_cool_down)))


_ONE, _ONE_COOLING = (_statement(_ONE_TEXT, has_cool_down=has_cool_down) for has_cool_down in (False, True))
_MANY, _MANY_COOLING = (_statement(_MANY_TEXT, has_cool_down=has_cool_down) for has_cool_down in (False, True))


@dataclass(frozen=True, slots=True)
class EnqueueOutcome:
    """Say which job stands for the call: a new one, or the unfinished one with equal arguments."""

    job_id: int
    is_duplicate: bool


@overload
def enqueue(connection: AnySync, job: Job[P], /, *args: P.args, **kwargs: P.kwargs) -> EnqueueOutcome: ...
@overload
def enqueue(connection: AnyAsync, job: Job[P], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[EnqueueOutcome]: ...
def enqueue(
    connection: "AnySync | AnyAsync", job: Job[P], /, *args: P.args, **kwargs: P.kwargs
) -> EnqueueOutcome | Awaitable[EnqueueOutcome]:
    """Enqueue `job` with these arguments in the transaction that is open on `connection`.

    `connection` is a SQLAlchemy Session, AsyncSession, Connection or AsyncConnection, or a psycopg connection; for the
    async ones the result is awaited. `job.at(…)` and `job.after(…)` schedule it for later. The job exists once the caller
    commits; a rollback, also to a savepoint, takes it back.

    Raises:
        NoTransactionError: no transaction is open on the connection.
        ArgumentsError: the arguments do not fit the job's parameters or cannot be stored.
        ConflictError: equal jobs came and went faster than could be answered; try again.
    """
    return run(connection, _enqueue_one(job, job.encode(job.bind(*args, **kwargs))))


@overload
def enqueue_many(connection: AnySync, job: Job[P], arguments: Iterable[Mapping[str, object]]) -> list[EnqueueOutcome]: ...
@overload
def enqueue_many(
    connection: AnyAsync, job: Job[P], arguments: Iterable[Mapping[str, object]]
) -> Awaitable[list[EnqueueOutcome]]: ...
def enqueue_many(
    connection: "AnySync | AnyAsync", job: Job[P], arguments: Iterable[Mapping[str, object]]
) -> list[EnqueueOutcome] | Awaitable[list[EnqueueOutcome]]:
    """Enqueue `job` once for each mapping of arguments, in one statement; otherwise as `enqueue`.

    Returns an outcome for each item, in order: the new job's id, or the id of the job that it is a duplicate of, which may
    be that of an equal item of the same call. At most 10,000 items; all are checked before anything is written.

    Raises:
        NoTransactionError: no transaction is open on the connection.
        ArgumentsError: an item does not fit; the message starts with its index. Or there are more than 10,000.
        ConflictError: equal jobs came and went faster than could be answered; try again.
    """
    encoded: list[str] = []
    for index, item in enumerate(arguments):
        try:
            encoded.append(job.encode(item))
        except ArgumentsError as error:
            raise ArgumentsError(f"item {index}: {error}") from error
    if len(encoded) > MOST_AT_ONCE:
        raise ArgumentsError(f"{len(encoded)} items at once; {MOST_AT_ONCE} is the most, call it for parts of them")
    return run(connection, enqueueing(job, encoded))


def enqueue_encoded(connection: "psycopg.Connection[object]", job: Job[...], args: str) -> EnqueueOutcome:
    """Enqueue a job whose arguments are JSON text already; otherwise as `enqueue`.

    Raises:
        NoTransactionError: no transaction is open on the connection.
        ConflictError: equal jobs came and went faster than could be answered.
    """
    return run(connection, _enqueue_one(job, args))


def _enqueue_one(job: Job[...], args: str) -> Plan[EnqueueOutcome]:
    statement = _ONE if job.unique.cool_down is None else _ONE_COOLING
    values = _values(job) | {"args": args}
    for _ in range(_TRIES):
        rows = yield statement, values
        if rows:
            job_id, is_duplicate = rows[0]
            tell_enqueued(job.queue, is_duplicate=bool(is_duplicate))
            return EnqueueOutcome(int(str(job_id)), bool(is_duplicate))
    raise _never_seen(job)


def enqueueing(job: Job[...], encoded: Sequence[str]) -> Plan[list[EnqueueOutcome]]:
    """Enqueue the job for each of these JSON texts of arguments; see enqueue_many."""
    statement = _MANY if job.unique.cool_down is None else _MANY_COOLING
    outcomes: dict[int, EnqueueOutcome] = {}
    missing = list(range(len(encoded)))
    for _ in range(_TRIES):
        if not missing:
            break
        rows = yield statement, _values(job) | {"args": [encoded[index] for index in missing]}
        for position, job_id, is_duplicate in rows:
            index = missing[int(str(position)) - 1]
            if job_id is not None and index not in outcomes:  # two jobs can hold a key: an unfinished one and one that cools down
                outcomes[index] = EnqueueOutcome(int(str(job_id)), bool(is_duplicate))
                tell_enqueued(job.queue, is_duplicate=bool(is_duplicate))
        missing = [index for index in missing if index not in outcomes]
    if missing:
        raise _never_seen(job)
    return [outcomes[index] for index in range(len(encoded))]


def _values(job: Job[...]) -> dict[str, object]:
    return {
        "kind": job.kind,
        "queue": job.queue,
        "is_unique": job.unique.mode is not None,
        "until_start": job.unique.mode == "until_start",
        "cool_down": cool_down_seconds(job.unique),
        "counted": None if job.unique.args is None else list(job.unique.args),
        "max_attempts": job.max_attempts,
        "timeout": job.timeout.total_seconds(),
        "retain": None if job.retain is None else job.retain.total_seconds(),
        "scheduled_at": job.scheduled_at,
        "delay": None if job.delay is None else job.delay.total_seconds(),
        "trace_context": trace_context(),
    }


def _never_seen(job: Job[...]) -> ConflictError:
    return ConflictError(f"equal {job.kind} jobs kept coming and going through {_TRIES} tries; enqueue again")
