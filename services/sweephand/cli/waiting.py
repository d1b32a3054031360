"""Wait for what others have to do first: the database to answer, the leader to run a requested tick."""

import time
from datetime import datetime, timedelta
from threading import Event

import psycopg
import structlog

from sweephand.model.errors import ConflictError, DatabaseError
from sweephand.postgres.connect import connect
from sweephand.postgres.operator_session import reading
from sweephand.postgres.sweep_views import SweepName, read_leaders
from sweephand.postgres.tick_views import TickView, read_requested_tick

_LOOK_SECONDS = 0.2
_CONNECT_SECONDS = 1


def wait_for_database(database_url: str, *, timeout: timedelta) -> None:
    """Return once PostgreSQL answers, and at the latest after the timeout; whoever connects next meets the error then.

    Raises:
        SettingsError: the URL is no PostgreSQL URL.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    pause = Event()
    is_told = False
    while time.monotonic() < deadline:
        try:
            connect(database_url, application_name="sweephand migrate").close()
        except DatabaseError as error:
            if not is_told:
                structlog.get_logger().warning("waiting_for_database", reason=str(error))
                is_told = True
            pause.wait(_CONNECT_SECONDS)
        else:
            return


def wait_for_tick(connection: psycopg.Connection, sweep: SweepName, requested_at: datetime, *, timeout: timedelta) -> TickView:
    """Return the tick that answers a request to run now.

    Raises:
        ConflictError: no dispatcher ran it in time; the request stays.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    pause = Event()
    while True:
        with reading(connection):
            tick = read_requested_tick(connection, app=sweep.app, sweep=sweep.name, requested_at=requested_at)
        if tick is not None:
            return tick
        if time.monotonic() >= deadline:
            break
        pause.wait(_LOOK_SECONDS)
    leader = next((leader for leader in read_leaders(connection) if leader.app == sweep.app), None)
    who = f"{leader.holder} led last, in term {leader.term}" if leader else "nobody ever led"
    raise ConflictError(
        f"no dispatcher ran {sweep} within {timeout.total_seconds():g} s ({who}); the request stays, look whether one is running"
    )
