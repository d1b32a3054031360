"""Retry, cancel, discard and delete jobs on an operator's word, as `model/lifecycle.py` allows it in each state.

In batches, each a transaction of its own with its rows locked in the order of ids: nothing waits long, and nothing
deadlocks with the workers' own batches. The state stands in each WHERE, so a job that moved on meanwhile is left alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import psycopg
from psycopg import sql

from sweephand.model.errors import ConflictError
from sweephand.model.lifecycle import VERBS, JobVerb, Refusal
from sweephand.model.states import JobState
from sweephand.postgres.audit import record, rewrite_note
from sweephand.postgres.job_filter import JobFilter
from sweephand.postgres.operator_session import writing

BATCH_SIZE = 500
# Each try sees the twin that made the one before fail; only a stream of new twins can use all of them up.
_TRIES = 5

_FOUND = sql.SQL("SELECT kind, array_agg(id) FROM sweephand.job WHERE {condition} GROUP BY kind")
_LOCKED = """
WITH locked AS MATERIALIZED (
    SELECT id, state, unique_key FROM sweephand.job
    WHERE id = ANY (%(ids)s::bigint[]) AND state = ANY (%(states)s::text[]) ORDER BY id FOR UPDATE
)"""
# A finished job takes its unique key again, which fails if an unfinished one has it, or another of this batch takes it.
_RETRY = f"""{_LOCKED}, ranked AS (
    SELECT locked.*, state IN ('completed', 'discarded', 'cancelled') AS is_finished, row_number() OVER (
        PARTITION BY unique_key, state IN ('completed', 'discarded', 'cancelled') ORDER BY id DESC) AS place
    FROM locked
), fitting AS (
    SELECT id FROM ranked WHERE unique_key IS NULL OR NOT is_finished OR (place = 1 AND NOT EXISTS (
        SELECT FROM sweephand.job AS twin WHERE twin.unique_key = ranked.unique_key
            AND twin.state IN ('scheduled', 'available', 'running', 'retryable')))
), changed AS (
    UPDATE sweephand.job SET state = 'available', scheduled_at = now(), max_attempts = greatest(max_attempts, attempt + 1),
        finished_at = NULL, cancel_requested_at = NULL, cancel_reason = NULL
    WHERE id = ANY (ARRAY (SELECT id FROM fitting)) RETURNING id, queue
), notified AS (
    SELECT pg_notify('sweephand.' || queue, '') FROM (SELECT DISTINCT queue FROM changed) AS queues
    WHERE current_setting('sweephand.notify', true) IS DISTINCT FROM 'off'
)
SELECT id, locked.state FROM changed JOIN locked USING (id) CROSS JOIN (SELECT count(*) FROM notified) AS sent ORDER BY id
"""  # noqa: S608 - made of constants
# A running job is only asked to stop: its worker ends the attempt, and says so.
_CANCEL = f"""{_LOCKED}, changed AS (
    UPDATE sweephand.job SET state = CASE WHEN job.state = 'running' THEN 'running' ELSE 'cancelled' END,
        finished_at = CASE WHEN job.state = 'running' THEN NULL ELSE now() END,
        cancel_requested_at = coalesce(cancel_requested_at, now()), cancel_reason = coalesce(%(note)s, cancel_reason)
    WHERE id = ANY (ARRAY (SELECT id FROM locked)) RETURNING id
)
SELECT id, locked.state FROM changed JOIN locked USING (id) ORDER BY id
"""  # noqa: S608
_DISCARD = f"""{_LOCKED}, changed AS (
    UPDATE sweephand.job SET state = 'discarded', finished_at = now()
    WHERE id = ANY (ARRAY (SELECT id FROM locked)) RETURNING id
)
SELECT id, locked.state FROM changed JOIN locked USING (id) ORDER BY id
"""  # noqa: S608
_DELETE = f"""{_LOCKED}, gone AS (
    DELETE FROM sweephand.job WHERE id = ANY (ARRAY (SELECT id FROM locked)) RETURNING id
), gone_attempts AS (
    DELETE FROM sweephand.job_attempt WHERE job_id = ANY (ARRAY (SELECT id FROM locked))
)
SELECT id, locked.state FROM gone JOIN locked USING (id) ORDER BY id
"""  # noqa: S608
_STATEMENTS: Mapping[JobVerb, str] = MappingProxyType(
    {JobVerb.RETRY: _RETRY, JobVerb.CANCEL: _CANCEL, JobVerb.DISCARD: _DISCARD, JobVerb.DELETE: _DELETE}
)
_PRESENT = """
SELECT job.id, job.state, (
    SELECT twin.id FROM sweephand.job AS twin WHERE twin.unique_key = job.unique_key AND twin.id <> job.id
        AND twin.state IN ('scheduled', 'available', 'running', 'retryable'))
FROM sweephand.job WHERE id = ANY (%(ids)s::bigint[])
"""


@dataclass(frozen=True, slots=True)
class FoundJobs:
    """Be the ids that a filter chose, in order, and how many of each kind there are, the most first."""

    ids: Sequence[int]
    by_kind: Mapping[str, int]

    def __str__(self) -> str:
        """Return `37 jobs (30 publish_product, 7 send_mail)`, at most three kinds by name."""
        named = [f"{count:,} {kind}" for kind, count in list(self.by_kind.items())[:3]]
        others = len(self.ids) - sum(list(self.by_kind.values())[:3])
        kinds = ", ".join([*named, f"{others:,} of other kinds"] if others else named)
        return f"{len(self.ids):,} job{'' if len(self.ids) == 1 else 's'} ({kinds})"


@dataclass(frozen=True, slots=True)
class ChangedJob:
    """Be a job that the verb was done to; `before` is the state in which it was found."""

    id: int
    before: JobState


@dataclass(frozen=True, slots=True)
class RefusedJob:
    """Be a job that was left as it is; `reason` is a sentence. `is_missing`: there is no such job."""

    id: int
    reason: str
    is_missing: bool


@dataclass(frozen=True, slots=True)
class ActionReport:
    """Say what became of each job that was asked for."""

    changed: tuple[ChangedJob, ...]
    refused: tuple[RefusedJob, ...]


def states_for(verb: JobVerb, which: JobFilter) -> tuple[JobState, ...]:
    """Return the states that a filter means for a verb: those it names, or those that the verb means by itself.

    Raises:
        ConflictError: it names a state in which the verb does nothing.
    """
    rule = VERBS[verb]
    for state in which.states:
        refusal = rule.by_state[state]
        if isinstance(refusal, Refusal):
            raise ConflictError(f"{verb} does nothing for state {state}: such a job {refusal.reason}")
    return which.states or rule.unless_said


def find_jobs(connection: psycopg.Connection, which: JobFilter) -> FoundJobs:
    """Return all jobs that the filter chooses, in the transaction that is open; it locks none of them."""
    rows = connection.execute(_FOUND.format(condition=which.condition()), which.values()).fetchall()
    by_kind = {str(kind): len(ids) for kind, ids in sorted(rows, key=lambda row: -len(row[1]))}
    return FoundJobs(ids=sorted(job_id for _, ids in rows for job_id in ids), by_kind=by_kind)


def act_on_jobs(
    connection: psycopg.Connection,
    verb: JobVerb,
    ids: Iterable[int],
    *,
    by: str,
    note: str | None,
    which: JobFilter | None = None,
) -> ActionReport:
    """Do the verb to jobs, and say what became of each.

    `which` is the filter that `find_jobs` found them by: only jobs that are still in its states are changed, and all of it
    is one entry in the audit. None: they were named one by one, and each has an entry of its own.

    Raises:
        ConflictError: the filter names a state in which the verb does nothing.
    """
    states = VERBS[verb].allowed() if which is None else states_for(verb, which)
    audit = _Audit(connection, verb, which=which, by=by, note=note)
    changed: list[ChangedJob] = []
    refused: list[RefusedJob] = []
    for batch in _batches(sorted(set(ids))):
        values = {"ids": batch, "states": [state.value for state in states], "note": note}
        done = _change(connection, verb, values, audit)
        changed += done
        refused += _refusals(connection, verb, set(batch) - {job.id for job in done})
    return ActionReport(tuple(changed), tuple(refused))


class _Audit:
    """Write what an action has changed: an entry for each job, or one whose note tells how many there were so far."""

    def __init__(
        self, connection: psycopg.Connection, verb: JobVerb, *, which: JobFilter | None, by: str, note: str | None
    ) -> None:
        self._connection = connection
        self._action = f"job.{verb}"
        self._which = which
        self._by = by
        self._note = note
        self._count = 0
        self._entry_id: int | None = None

    def write(self, changed: Sequence[ChangedJob]) -> None:
        """Add the jobs, in the transaction that changed them."""
        if self._which is None:
            for job in changed:
                record(self._connection, actor=self._by, action=self._action, target=f"job {job.id}", note=self._note)
        elif changed:
            self._count += len(changed)
            words = f"{self._count} jobs" if self._note is None else f"{self._count} jobs: {self._note}"
            if self._entry_id is None:
                target = f"jobs {self._which}"
                self._entry_id = record(self._connection, actor=self._by, action=self._action, target=target, note=words)
            else:
                rewrite_note(self._connection, self._entry_id, note=words)


def _change(connection: psycopg.Connection, verb: JobVerb, values: Mapping[str, object], audit: _Audit) -> list[ChangedJob]:
    """Change one batch and its audit in a transaction; again if a twin was enqueued meanwhile."""
    for _ in range(_TRIES):
        try:
            with writing(connection):
                rows = connection.execute(_STATEMENTS[verb].encode(), values).fetchall()
                changed = [ChangedJob(id=int(job_id), before=JobState(before)) for job_id, before in rows]
                audit.write(changed)
                return changed
        except psycopg.errors.UniqueViolation:
            continue
    raise ConflictError(f"equal jobs kept being enqueued through {_TRIES} tries; {verb} again")


def _refusals(connection: psycopg.Connection, verb: JobVerb, ids: set[int]) -> list[RefusedJob]:
    """Say of each job why it was left as it is, by what can be seen of it now."""
    if not ids:
        return []
    rows = connection.execute(_PRESENT, {"ids": sorted(ids)}).fetchall()
    present = {int(job_id): (JobState(state), twin) for job_id, state, twin in rows}
    return [_refusal(verb, job_id, present.get(job_id)) for job_id in sorted(ids)]


def _refusal(verb: JobVerb, job_id: int, present: tuple[JobState, int | None] | None) -> RefusedJob:
    if present is None:
        reason = f"there is no job {job_id}; finished jobs are deleted when their retention is over"
        return RefusedJob(job_id, reason, is_missing=True)
    state, twin_id = present
    rule = VERBS[verb].by_state[state]
    if isinstance(rule, Refusal):
        reason = f"job {job_id} {rule.reason}"
    elif verb is JobVerb.RETRY and twin_id is not None:
        reason = f"job {job_id} has an unfinished twin, job {twin_id}, with equal arguments; wait for that one or cancel it first"
    else:
        reason = f"job {job_id} has changed meanwhile and is {state} now; look again"
    return RefusedJob(job_id, reason, is_missing=False)


def _batches(ids: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), BATCH_SIZE):
        yield list(ids[start : start + BATCH_SIZE])
