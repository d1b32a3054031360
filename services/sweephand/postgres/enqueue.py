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
from sweephand.postgres import enqueue_statements
from sweephand.postgres.callers_transaction import AnyAsync, AnySync, Plan, Rows, run
from sweephand.postgres.enqueue_statements import values_of

P = ParamSpec("P")

MOST_AT_ONCE = 10_000
MOST_CHARACTERS_AT_ONCE = 100_000_000  # Source: jsonb.h, JENTRY_OFFLENMASK; the elements of one array have 256 MB at most

# A duplicate that commits while the statement runs is invisible to its snapshot: no row comes back, and the next try sees
# it. It can finish and be replaced meanwhile, hence several tries, and an error if even they find nothing.
_TRIES = 5


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
    be that of an equal item of the same call. At most 10,000 items, with 100 MB of arguments together; all are checked before
    anything is written.

    Raises:
        NoTransactionError: no transaction is open on the connection.
        ArgumentsError: an item does not fit; the message starts with its index. Or there are too many.
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
    characters = sum(map(len, encoded))
    if characters > MOST_CHARACTERS_AT_ONCE:
        most = f"{MOST_CHARACTERS_AT_ONCE:,}"
        raise ArgumentsError(f"{characters:,} characters of arguments at once; {most} is the most, call it for parts of them")
    return run(connection, enqueueing(job, encoded))


def enqueue_encoded(connection: "psycopg.Connection[object]", job: Job[...], args: str) -> EnqueueOutcome:
    """Enqueue a job whose arguments are JSON text already; otherwise as `enqueue`.

    Raises:
        NoTransactionError: no transaction is open on the connection.
        ConflictError: equal jobs came and went faster than could be answered.
    """
    return run(connection, _enqueue_one(job, args))


def _enqueue_one(job: Job[...], args: str) -> Plan[EnqueueOutcome]:
    values = values_of(job)
    statement = enqueue_statements.one(tuple(values), is_unique=job.unique.mode is not None)
    values["args"] = args
    for _ in range(_TRIES):
        rows = yield statement, values
        if rows:
            outcome = EnqueueOutcome(int(str(rows[0][0])), rows[0][1] is True)
            tell_enqueued(job.queue, [outcome])
            return outcome
    raise _never_seen(job)


def enqueueing(job: Job[...], encoded: Sequence[str]) -> Plan[list[EnqueueOutcome]]:
    """Enqueue the job for each of these JSON texts of arguments; see enqueue_many."""
    values = values_of(job)
    statement = enqueue_statements.many(tuple(values), is_unique=job.unique.mode is not None)
    outcomes: list[EnqueueOutcome | None] = [None] * len(encoded)
    missing: Sequence[int] = range(len(encoded))
    added: set[int] = set()
    values["is_looking"] = False
    for _ in range(_TRIES):
        if not missing:
            break
        values["items"] = f"[{','.join([encoded[index] for index in missing])}]"
        rows = yield statement, values
        new, holders = _new_and_holders(rows)
        if len(new) == len(missing):
            for index, job_id in zip(missing, new, strict=True):
                outcomes[index] = EnqueueOutcome(job_id, is_duplicate=False)
            break
        for position, job_id in holders:
            outcomes[missing[position - 1]] = EnqueueOutcome(job_id, job_id not in added)
            added.discard(job_id)  # it stands for one item; equal ones are its duplicates
        added.update(new)
        values["is_looking"] = bool(new)
        missing = [index for index in missing if outcomes[index] is None]
    known = [outcome for outcome in outcomes if outcome is not None]
    if len(known) < len(encoded):
        raise _never_seen(job)
    tell_enqueued(job.queue, known)
    return known


def _new_and_holders(rows: Rows) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the ids of new jobs, in the order of their items, and position and id of each that holds an item's key."""
    new: list[int] = []
    holders: list[tuple[int, int]] = []
    for job_id, position in rows:
        if isinstance(job_id, int):  # always so; it tells the type checker
            if isinstance(position, int):
                holders.append((position, job_id))
            else:
                new.append(job_id)
    new.sort()
    holders.sort()
    return new, holders


def _never_seen(job: Job[...]) -> ConflictError:
    return ConflictError(f"equal {job.kind} jobs kept coming and going through {_TRIES} tries; enqueue again")
