"""Keep the sweep table: what the leader registers, what the loop reads, and what operators ask for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from psycopg.rows import class_row

from sweephand.model.ticks import TickState
from sweephand.postgres.leader import Term, fence
from sweephand.postgres.moments import utc
from sweephand.sweep import Sweep

_REGISTER_TIMEOUT = timedelta(seconds=10)

# The anchor is laid once, at the first registration; next_tick_at moves nearer when the schedule has become denser.
_REGISTER = """
INSERT INTO sweephand.sweep AS sweep (app, name, kind, queue, schedule, batch_limit, scan_bound, run_on_start, catch_up,
                                      overlap, anchor_at, next_tick_at, registered_term)
VALUES (%(app)s, %(name)s, %(kind)s, %(queue)s, %(schedule)s, %(limit)s, %(scan_bound)s, %(run_on_start)s, %(catch_up)s,
        %(overlap)s, %(anchor_at)s, %(next_tick_at)s, %(term)s)
ON CONFLICT (app, name) DO UPDATE SET
    kind = EXCLUDED.kind, queue = EXCLUDED.queue, schedule = EXCLUDED.schedule, batch_limit = EXCLUDED.batch_limit,
    scan_bound = EXCLUDED.scan_bound, run_on_start = EXCLUDED.run_on_start, catch_up = EXCLUDED.catch_up,
    overlap = EXCLUDED.overlap, registered_term = EXCLUDED.registered_term,
    next_tick_at = CASE WHEN sweep.schedule = EXCLUDED.schedule THEN sweep.next_tick_at
                        ELSE least(sweep.next_tick_at, %(after)s) END
"""

_ANCHORS = "SELECT name, anchor_at FROM sweephand.sweep WHERE app = %(app)s"

_STATES = """
SELECT clock.now, name, anchor_at, next_tick_at, paused_at, run_requested_at
FROM (SELECT clock_timestamp() AS now) AS clock LEFT JOIN sweephand.sweep ON app = %(app)s
"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Be the state of an application's sweeps at one moment of the database's clock."""

    now: datetime
    states: Mapping[str, TickState]


@dataclass(frozen=True, slots=True)
class _StateRow:
    """Be one row; all but `now` are None when the application has no sweep."""

    now: datetime
    name: str | None
    anchor_at: datetime | None
    next_tick_at: datetime | None
    paused_at: datetime | None
    run_requested_at: datetime | None


async def register(connection: psycopg.AsyncConnection, term: Term, sweeps: Iterable[Sweep]) -> None:
    """Write the application's sweeps as its code defines them, in one fenced transaction. Others' rows are left alone.

    Raises:
        FencedError: a later term has begun.
    """
    async with connection.transaction():
        await fence(connection, term, statement_timeout=_REGISTER_TIMEOUT)
        found = await connection.execute(_ANCHORS, {"app": term.name})
        anchors: dict[str, datetime] = {str(name): utc(anchor) for name, anchor in await found.fetchall()}
        for sweep in sweeps:
            # Whole seconds make planned times that people can read.
            anchor = anchors.get(sweep.name, term.since.replace(microsecond=0))
            schedule = sweep.policy.schedule
            after = schedule.after(term.since, anchor=anchor)
            await connection.execute(
                _REGISTER,
                {
                    "app": term.name,
                    "name": sweep.name,
                    "kind": sweep.job.kind,
                    "queue": sweep.job.queue,
                    "schedule": str(schedule),
                    "limit": sweep.limit,
                    "scan_bound": sweep.scan_bound,
                    "run_on_start": sweep.policy.run_on_start,
                    "catch_up": str(sweep.policy.catch_up),
                    "overlap": sweep.policy.overlap.value,
                    "anchor_at": anchor,
                    "next_tick_at": schedule.latest(anchor, anchor=anchor) if sweep.policy.run_on_start else after,
                    "after": after,
                    "term": term.number,
                },
            )


async def read_states(connection: psycopg.AsyncConnection, *, app: str) -> Snapshot:
    """Return the state of the application's sweeps."""
    async with connection.cursor(row_factory=class_row(_StateRow)) as cursor:
        rows = await (await cursor.execute(_STATES, {"app": app})).fetchall()
    return Snapshot(
        now=utc(rows[0].now),
        states={
            row.name: TickState(
                anchor_at=utc(row.anchor_at),
                next_tick_at=utc(row.next_tick_at),
                paused_at=None if row.paused_at is None else utc(row.paused_at),
                run_requested_at=None if row.run_requested_at is None else utc(row.run_requested_at),
            )
            for row in rows
            if row.name is not None and row.anchor_at is not None and row.next_tick_at is not None
        },
    )
