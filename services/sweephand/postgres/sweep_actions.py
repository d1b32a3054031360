"""Pause, resume and run sweeps on an operator's word; each change and its audit entry are one transaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

import psycopg

from sweephand.model.errors import NotFoundError
from sweephand.postgres.audit import record
from sweephand.postgres.moments import utc_row
from sweephand.postgres.operator_session import writing
from sweephand.postgres.sweep_views import SweepName

_PAUSE = """
UPDATE sweephand.sweep AS sweep
SET paused_at = coalesce(sweep.paused_at, now()), paused_by = %(by)s, paused_note = %(note)s
FROM (SELECT paused_at FROM sweephand.sweep WHERE app = %(app)s AND name = %(name)s FOR UPDATE) AS before
WHERE sweep.app = %(app)s AND sweep.name = %(name)s
RETURNING before.paused_at IS NULL
"""
_RESUME = """
UPDATE sweephand.sweep AS sweep SET paused_at = NULL, paused_by = NULL, paused_note = NULL
FROM (SELECT paused_at FROM sweephand.sweep WHERE app = %(app)s AND name = %(name)s FOR UPDATE) AS before
WHERE sweep.app = %(app)s AND sweep.name = %(name)s
RETURNING before.paused_at IS NOT NULL
"""
# The request's moment becomes the tick's planned time, so a second request before the tick joins the first.
_REQUEST = """
UPDATE sweephand.sweep AS sweep
SET run_requested_at = coalesce(sweep.run_requested_at, clock_timestamp()),
    run_requested_by = CASE WHEN sweep.run_requested_at IS NULL THEN %(by)s ELSE sweep.run_requested_by END
FROM (SELECT run_requested_at FROM sweephand.sweep WHERE app = %(app)s AND name = %(name)s FOR UPDATE) AS before
WHERE sweep.app = %(app)s AND sweep.name = %(name)s
RETURNING before.run_requested_at IS NULL AS is_new, sweep.run_requested_at AS requested_at
"""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Say when a tick was asked for, which is its planned time; `is_new` is False if somebody had asked already."""

    requested_at: datetime
    is_new: bool


def pause_sweep(connection: psycopg.Connection, sweep: SweepName, *, by: str, note: str | None) -> bool:
    """Let the sweep's ticks pass by, recorded as paused; return whether it was not paused before.

    Pausing again keeps the moment and replaces who and why. `sweeps run` still runs it.

    Raises:
        NotFoundError: it is not registered.
    """
    with writing(connection):
        was_running = _change(connection, _PAUSE, sweep, {"by": by, "note": note})
        record(connection, actor=by, action="sweep.pause", target=str(sweep), note=note)
    return was_running


def resume_sweep(connection: psycopg.Connection, sweep: SweepName, *, by: str, note: str | None) -> bool:
    """Let the sweep tick again, from its next planned time on; return whether it was paused.

    Raises:
        NotFoundError: it is not registered.
    """
    with writing(connection):
        was_paused = _change(connection, _RESUME, sweep, {})
        if was_paused:
            record(connection, actor=by, action="sweep.resume", target=str(sweep), note=note)
    return was_paused


def request_run(connection: psycopg.Connection, sweep: SweepName, *, by: str, note: str | None) -> RunRequest:
    """Ask the leader for a tick now, beside the planned ones; it sees the request within its poll interval.

    Raises:
        NotFoundError: it is not registered.
    """
    with writing(connection):
        with connection.cursor(row_factory=utc_row(RunRequest)) as cursor:
            request = cursor.execute(_REQUEST, {"app": sweep.app, "name": sweep.name, "by": by}).fetchone()
        if request is None:
            raise _gone(sweep)
        record(connection, actor=by, action="sweep.run", target=str(sweep), note=note)
    return request


def _change(connection: psycopg.Connection, statement: LiteralString, sweep: SweepName, bound: dict[str, object]) -> bool:
    """Return whether the statement changed anything, by its own word."""
    row = connection.execute(statement, {"app": sweep.app, "name": sweep.name, **bound}).fetchone()
    if row is None:
        raise _gone(sweep)
    return bool(row[0])


def _gone(sweep: SweepName) -> NotFoundError:
    return NotFoundError(f"there is no sweep {sweep} any more")
