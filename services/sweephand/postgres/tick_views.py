"""Read the ledger for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from psycopg import sql

from sweephand.model.ticks import TickOutcome
from sweephand.postgres.moments import utc_row

_COLUMNS = sql.SQL(
    "tick.id, tick.app, tick.sweep, tick.planned_at, tick.reason, tick.outcome, tick.cause, tick.covers, tick.made_up_by, "
    "tick.started_at, tick.ended_at, tick.enqueued, tick.skipped_duplicates, tick.refused, tick.scan_truncated, "
    "nullif(tick.error, '') AS error, tick.term, tick.dispatcher"
)
# The two halves have an index each: tick_once for all but the fenced tries, tick_fenced for those.
_OF_SWEEP = sql.SQL(
    """
SELECT {columns} FROM (
    (SELECT * FROM sweephand.tick WHERE app = %(app)s AND sweep = %(sweep)s AND outcome <> 'fenced' AND {which}
     ORDER BY planned_at DESC LIMIT %(limit)s)
    UNION ALL
    (SELECT * FROM sweephand.tick WHERE app = %(app)s AND sweep = %(sweep)s AND outcome = 'fenced' AND {which}
     ORDER BY planned_at DESC LIMIT %(limit)s)
) AS tick ORDER BY planned_at DESC, id DESC LIMIT %(limit)s
"""
)
_OF_ALL = sql.SQL("SELECT {columns} FROM sweephand.tick WHERE {which} ORDER BY planned_at DESC, id DESC LIMIT %(limit)s")
_LAST_RUNS = sql.SQL(
    """
SELECT {columns} FROM sweephand.sweep AS registered CROSS JOIN LATERAL (
    SELECT * FROM sweephand.tick AS one WHERE one.app = registered.app AND one.sweep = registered.name
        AND one.outcome <> 'fenced' AND one.outcome IN ('ok', 'empty', 'error')
    ORDER BY one.planned_at DESC LIMIT 1) AS tick
"""
)
_MANUAL = sql.SQL(
    """
SELECT {columns} FROM sweephand.tick
WHERE app = %(app)s AND sweep = %(sweep)s AND planned_at = %(planned_at)s AND outcome <> 'fenced'
"""
)


@dataclass(frozen=True, slots=True)
class TickView:
    """Be one row of the ledger. It stands for `covers` planned times from `planned_at` on; 1 for all that ran.

    `made_up_by` is the id of the tick that ran instead of a collapsed one. `error` has the database's words, or the first
    refused rows, one a line.
    """

    id: int
    app: str
    sweep: str
    planned_at: datetime
    reason: str
    outcome: str
    cause: str | None
    covers: int
    made_up_by: int | None
    started_at: datetime | None
    ended_at: datetime | None
    enqueued: int
    skipped_duplicates: int
    refused: int
    scan_truncated: bool
    error: str | None
    term: int
    dispatcher: str


@dataclass(frozen=True, slots=True)
class TickFilter:
    """Choose ticks: of one sweep (app, name), with one of these outcomes, planned no longer ago than `since`; None: any."""

    sweep: tuple[str, str] | None = None
    outcomes: Sequence[TickOutcome] = ()
    since: timedelta | None = None


def read_ticks(connection: psycopg.Connection, which: TickFilter, *, limit: int) -> list[TickView]:
    """Return the ticks that were planned last, latest first."""
    conditions = [sql.SQL("true")]
    if which.outcomes:
        conditions.append(sql.SQL("outcome = ANY (%(outcomes)s)"))
    if which.since is not None:
        conditions.append(sql.SQL("planned_at >= now() - %(since)s"))
    statement = _OF_ALL if which.sweep is None else _OF_SWEEP
    app, sweep = which.sweep or (None, None)
    bound: dict[str, object] = {
        "app": app,
        "sweep": sweep,
        "outcomes": [outcome.value for outcome in which.outcomes],
        "since": which.since,
        "limit": limit,
    }
    with connection.cursor(row_factory=utc_row(TickView)) as cursor:
        composed = statement.format(columns=_COLUMNS, which=sql.SQL(" AND ").join(conditions))
        return cursor.execute(composed, bound).fetchall()


def read_last_runs(connection: psycopg.Connection) -> dict[tuple[str, str], TickView]:
    """Return the last tick of each sweep that scanned, well or not, by the sweep's app and name."""
    with connection.cursor(row_factory=utc_row(TickView)) as cursor:
        ticks = cursor.execute(_LAST_RUNS.format(columns=_COLUMNS)).fetchall()
    return {(tick.app, tick.sweep): tick for tick in ticks}


def read_requested_tick(connection: psycopg.Connection, *, app: str, sweep: str, requested_at: datetime) -> TickView | None:
    """Return the tick that answers a request to run now; None while there is none."""
    with connection.cursor(row_factory=utc_row(TickView)) as cursor:
        bound = {"app": app, "sweep": sweep, "planned_at": requested_at}
        return cursor.execute(_MANUAL.format(columns=_COLUMNS), bound).fetchone()
