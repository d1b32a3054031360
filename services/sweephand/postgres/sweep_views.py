"""Read the registered sweeps for people: all applications' sweeps of this database, and who leads each application."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import psycopg

from sweephand.model.errors import ConflictError, NotFoundError
from sweephand.postgres.moments import utc, utc_row
from sweephand.postgres.tick_views import TickView, read_last_runs

# A leader registers all sweeps of its code in its term, so one with an older term is in the leader's code no longer.
_SWEEPS = """
SELECT sweep.app, sweep.name, sweep.kind, sweep.queue, sweep.schedule, sweep.batch_limit AS limit, sweep.scan_bound,
    sweep.run_on_start, sweep.catch_up, sweep.overlap, sweep.anchor_at, sweep.next_tick_at,
    sweep.paused_at, sweep.paused_by, sweep.paused_note, sweep.run_requested_at, sweep.run_requested_by,
    coalesce(sweep.registered_term < leader.term, false) AS is_orphan,
    missed.ticks AS missed_ticks, missed.last_at AS last_missed_at
FROM sweephand.sweep LEFT JOIN sweephand.leader ON leader.name = sweep.app CROSS JOIN LATERAL (
    SELECT coalesce(sum(covers), 0)::bigint AS ticks, max(planned_at) AS last_at FROM sweephand.tick
    WHERE tick.app = sweep.app AND tick.sweep = sweep.name AND cause IN ('no_leader', 'db_down', 'late')
        AND planned_at > now() - interval '24 hours') AS missed
ORDER BY sweep.app, sweep.name
"""
_LEADERS = "SELECT name AS app, term, holder, since FROM sweephand.leader ORDER BY name"
_NOW = "SELECT clock_timestamp()"
_NAMED = "SELECT app, name FROM sweephand.sweep WHERE name = %(name)s AND (app = %(app)s OR %(app)s::text IS NULL) ORDER BY app"
_ALL_NAMES = "SELECT app || '/' || name FROM sweephand.sweep ORDER BY app, name LIMIT 20"


@dataclass(frozen=True, slots=True)
class SweepView:
    """Be a registered sweep. `missed_ticks` counts the last 24 hours.

    `is_orphan`: the code of its application's leader has it no longer, so it does not tick.
    """

    app: str
    name: str
    kind: str
    queue: str
    schedule: str
    limit: int
    scan_bound: int
    run_on_start: bool
    catch_up: str
    overlap: str
    anchor_at: datetime
    next_tick_at: datetime
    paused_at: datetime | None
    paused_by: str | None
    paused_note: str | None
    run_requested_at: datetime | None
    run_requested_by: str | None
    is_orphan: bool
    missed_ticks: int
    last_missed_at: datetime | None

    @property
    def path(self) -> str:
        """Return `app/name`, which names the sweep in the whole database."""
        return f"{self.app}/{self.name}"


@dataclass(frozen=True, slots=True)
class LeaderView:
    """Say who leads an application, or led it last, in which term and since when."""

    app: str
    term: int
    holder: str
    since: datetime


@dataclass(frozen=True, slots=True)
class SweepsView:
    """Be all sweeps of the database at one moment of its clock."""

    now: datetime
    leaders: tuple[LeaderView, ...]
    sweeps: tuple[SweepView, ...]
    last_runs: Mapping[tuple[str, str], TickView]

    def last_run(self, sweep: SweepView) -> TickView | None:
        """Return the sweep's last tick that scanned, well or not; None if the ledger has none."""
        return self.last_runs.get((sweep.app, sweep.name))

    def leader(self, app: str) -> LeaderView | None:
        """Return who leads an application, or led it last; None if nobody ever did."""
        return next((leader for leader in self.leaders if leader.app == app), None)


@dataclass(frozen=True, slots=True)
class SweepName:
    """Name one registered sweep."""

    app: str
    name: str

    def __str__(self) -> str:
        """Return `app/name`."""
        return f"{self.app}/{self.name}"


def read_sweeps(connection: psycopg.Connection) -> SweepsView:
    """Return the sweeps and leaders of all applications, in the transaction that is open."""
    with connection.cursor(row_factory=utc_row(SweepView)) as cursor:
        found = tuple(cursor.execute(_SWEEPS).fetchall())
    return SweepsView(
        now=read_now(connection), leaders=read_leaders(connection), sweeps=found, last_runs=read_last_runs(connection)
    )


def read_leaders(connection: psycopg.Connection) -> tuple[LeaderView, ...]:
    """Return who leads each application that was ever led."""
    with connection.cursor(row_factory=utc_row(LeaderView)) as cursor:
        return tuple(cursor.execute(_LEADERS).fetchall())


def find_sweep(connection: psycopg.Connection, path: str) -> SweepName:
    """Return the registered sweep that `name` or `app/name` means.

    Raises:
        NotFoundError: none is registered under this name.
        ConflictError: several applications have one of this name.
    """
    app, separator, name = path.rpartition("/")
    rows = connection.execute(_NAMED, {"name": name, "app": app if separator else None}).fetchall()
    if not rows:
        known = ", ".join(str(row[0]) for row in connection.execute(_ALL_NAMES).fetchall())
        hint = f"known are {known}" if known else "a dispatcher registers the sweeps of its application when it leads"
        raise NotFoundError(f"there is no sweep {path}; {hint}")
    if len(rows) > 1:
        which = " or ".join(f"{found}/{name}" for found, _ in rows)
        raise ConflictError(f"several applications have a sweep {name}; say which: {which}")
    return SweepName(app=str(rows[0][0]), name=str(rows[0][1]))


def read_now(connection: psycopg.Connection) -> datetime:
    """Return the database's clock."""
    row = connection.execute(_NOW).fetchone()
    if row is None:
        raise AssertionError("SELECT gave no row")
    return utc(row[0])
