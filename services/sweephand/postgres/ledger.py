"""Write the ledger: a row for each planned tick that did not dispatch. dispatch.py writes those that did."""

from datetime import datetime

import psycopg

from sweephand.model.errors import ConflictError
from sweephand.model.ticks import Step, TickOutcome
from sweephand.postgres.leader import Term
from sweephand.postgres.moments import utc

# The rest of a tick's row when its dispatch failed, and the guard that nobody else has moved the sweep on meanwhile.
_FAILED = """
WITH moved AS (
    UPDATE sweephand.sweep SET next_tick_at = %(next_tick_at)s,
        run_requested_at = nullif(run_requested_at, %(planned_at)s)
    WHERE app = %(app)s AND name = %(sweep)s AND next_tick_at = %(expected_tick_at)s
    RETURNING app, name
)
INSERT INTO sweephand.tick (app, sweep, planned_at, reason, outcome, cause, started_at, ended_at, error, term, dispatcher)
SELECT app, name, %(planned_at)s, %(reason)s, 'error', %(cause)s, %(started_at)s, clock_timestamp(), %(error)s, %(term)s,
       %(dispatcher)s
FROM moved
RETURNING id, ended_at
"""

_MOVE = """
UPDATE sweephand.sweep SET next_tick_at = %(next_tick_at)s
WHERE app = %(app)s AND name = %(sweep)s AND next_tick_at = %(expected_tick_at)s
"""

# Moves a sweep on from a tick that the ledger has already; a sweep that has moved on by itself is left alone.
_ADVANCE = """
UPDATE sweephand.sweep SET next_tick_at = %(next_tick_at)s, run_requested_at = nullif(run_requested_at, %(planned_at)s)
WHERE app = %(app)s AND name = %(sweep)s AND next_tick_at = %(expected_tick_at)s AND EXISTS (
    SELECT FROM sweephand.tick WHERE tick.app = sweep.app AND tick.sweep = sweep.name AND tick.planned_at = %(planned_at)s
        AND tick.outcome <> 'fenced')
"""

_SKIPPED = """
INSERT INTO sweephand.tick (app, sweep, planned_at, reason, outcome, cause, covers, made_up_by, term, dispatcher)
SELECT %(app)s, %(sweep)s, planned_at, 'tick', outcome, cause, covers,
       CASE WHEN outcome = 'collapsed' THEN %(made_up_by)s::bigint END, %(term)s, %(dispatcher)s
FROM unnest(%(planned)s::timestamptz[], %(outcomes)s::text[], %(causes)s::text[], %(covers)s::bigint[])
    AS skipped (planned_at, outcome, cause, covers)
ON CONFLICT (app, sweep, planned_at) WHERE outcome <> 'fenced' DO NOTHING
"""

_FENCED = """
INSERT INTO sweephand.tick (app, sweep, planned_at, reason, outcome, started_at, ended_at, error, term, dispatcher)
VALUES (%(app)s, %(sweep)s, %(planned_at)s, %(reason)s, 'fenced', %(started_at)s, clock_timestamp(), %(error)s, %(term)s,
        %(dispatcher)s)
"""


async def record_skipped(
    connection: psycopg.AsyncConnection, term: Term, *, sweep: str, step: Step, made_up_by: int | None
) -> None:
    """Write the rows of the step's skipped ticks, in the transaction that is open; they point to the tick that made up."""
    if not step.skipped:
        return
    await connection.execute(
        _SKIPPED,
        {
            "app": term.name,
            "sweep": sweep,
            "planned": [skipped.planned_at for skipped in step.skipped],
            "outcomes": [skipped.outcome.value for skipped in step.skipped],
            "causes": [skipped.cause.value if skipped.cause else None for skipped in step.skipped],
            "covers": [skipped.covers for skipped in step.skipped],
            "made_up_by": made_up_by,
            "term": term.number,
            "dispatcher": term.holder,
        },
    )


async def move_on(connection: psycopg.AsyncConnection, term: Term, *, sweep: str, step: Step, expected_tick_at: datetime) -> None:
    """Carry out a step that dispatches nothing, in the transaction that is open.

    Raises:
        ConflictError: the sweep has moved on meanwhile, so this step was planned from an old state.
    """
    moved = await connection.execute(
        _MOVE,
        {
            "app": term.name,
            "sweep": sweep,
            "next_tick_at": step.next_tick_at,
            "expected_tick_at": expected_tick_at,
        },
    )
    if moved.rowcount != 1:
        raise ConflictError(f"sweep {sweep} is no longer at {expected_tick_at.isoformat()}; plan it again")
    await record_skipped(connection, term, sweep=sweep, step=step, made_up_by=None)


async def pass_over(
    connection: psycopg.AsyncConnection, term: Term, *, sweep: str, step: Step, expected_tick_at: datetime
) -> None:
    """Move on from a tick that could not be dispatched because it was before, in the transaction that is open.

    Without it a request for a moment that has its row already would be planned, and refused, for ever.

    Raises:
        ConflictError: the sweep has moved on by itself, so this step was planned from an old state.
    """
    if step.due is None:
        return
    moved = await connection.execute(
        _ADVANCE,
        {
            "app": term.name,
            "sweep": sweep,
            "planned_at": step.due.planned_at,
            "next_tick_at": step.next_tick_at,
            "expected_tick_at": expected_tick_at,
        },
    )
    if moved.rowcount != 1:
        raise ConflictError(f"sweep {sweep} is no longer at {expected_tick_at.isoformat()}; plan it again")
    await record_skipped(connection, term, sweep=sweep, step=step, made_up_by=None)


async def record_error(
    connection: psycopg.AsyncConnection,
    term: Term,
    *,
    sweep: str,
    step: Step,
    expected_tick_at: datetime,
    started_at: datetime,
    error: str,
) -> datetime:
    """Write the row of a dispatch that failed, and those of the step's skipped ticks, in the transaction that is open.

    Returns when it ended, by the database's clock.

    Raises:
        ConflictError: the sweep has moved on meanwhile: the dispatch did commit after all, or another leader made it.
    """
    values = _due_values(term, sweep=sweep, step=step, started_at=started_at, error=error)
    found = await connection.execute(_FAILED, values | {"next_tick_at": step.next_tick_at, "expected_tick_at": expected_tick_at})
    row = await found.fetchone()
    if row is None:
        raise ConflictError(f"sweep {sweep} is no longer at {expected_tick_at.isoformat()}; plan it again")
    await record_skipped(connection, term, sweep=sweep, step=step, made_up_by=int(row[0]))
    return utc(row[1])


async def record_fenced(
    connection: psycopg.AsyncConnection, term: Term, *, sweep: str, step: Step, started_at: datetime, error: str
) -> None:
    """Write that a dispatch of an old term was refused. The new leader runs the tick; this row only tells of the try."""
    await connection.execute(_FENCED, _due_values(term, sweep=sweep, step=step, started_at=started_at, error=error))


def _due_values(term: Term, *, sweep: str, step: Step, started_at: datetime, error: str) -> dict[str, object]:
    if step.due is None:
        raise ConflictError(f"sweep {sweep}: the step has no tick to record; this is a defect of the dispatcher")
    return {
        "app": term.name,
        "sweep": sweep,
        "planned_at": step.due.planned_at,
        "reason": step.due.reason.value,
        "cause": step.due.cause.value if step.due.cause else None,
        "outcome": TickOutcome.ERROR.value,
        "started_at": started_at,
        "error": error,
        "term": term.number,
        "dispatcher": term.holder,
    }
