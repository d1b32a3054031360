"""Run the leader's chores beside the ticks: each lane has its own connection, deadline and pace, and delays nobody else."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass

import psycopg
import structlog

from sweephand.dispatcher.lane_watch import LaneWatch
from sweephand.model.errors import DatabaseError, FencedError
from sweephand.postgres.bounded import bounded
from sweephand.postgres.connect import connect_async, is_connection_lost
from sweephand.telemetry import DispatcherMetrics

# What a round may take beyond its deadline: to connect, and to give up.
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Lane:
    """Be one chore: what it does, how often, and how long one round may take before it is given up and tried again.

    `run_once` gets an autocommit connection that is the lane's own, and returns whether it has done all there was to do. If
    not, since a round is bounded, the next one begins at once.
    """

    name: str
    every_seconds: float
    deadline_seconds: float
    run_once: Callable[[psycopg.AsyncConnection], Coroutine[object, object, bool]]


async def run_lane(lane: Lane, *, database_url: str, metrics: DispatcherMetrics, watch: LaneWatch) -> None:
    """Run the chore for ever. A round that fails or overruns is logged once a streak, and the next starts on a new connection.

    Raises:
        FencedError: the chore found that a later term has begun.
    """
    log = structlog.get_logger("sweephand.dispatcher").bind(lane=lane.name)
    connection: psycopg.AsyncConnection | None = None
    is_failing = False
    watch.begin(lane.name, patience_seconds=lane.every_seconds + lane.deadline_seconds + _ANSWER_SECONDS)
    try:
        while True:
            is_done = True
            try:
                if connection is None:
                    # Planned anew for each round: a kept plan may be one for tables that have grown since.
                    connection = await connect_async(
                        database_url, application_name=f"sweephand dispatcher {lane.name}", prepare=False
                    )
                is_done = await bounded(connection, lane.run_once(connection), seconds=lane.deadline_seconds)
            except FencedError:
                raise
            except Exception as error:  # noqa: BLE001 - the edge of the chore: nothing that it meets may end it for good
                watch.failed(lane.name, error=None if _is_database_away(error) else _text(error, lane))
                if not is_failing:
                    log.warning("lane_failed", error=_text(error, lane))
                is_failing = True
                await _close(connection)
                connection = None
            else:
                if is_failing:
                    log.info("lane_recovered")
                is_failing = False
                watch.came_around(lane.name)
                metrics.lane_last_success_timestamp_seconds.labels(lane.name).set_to_current_time()
            if is_done:
                await asyncio.sleep(lane.every_seconds)
    finally:
        watch.end(lane.name)
        await _close(connection)


async def _close(connection: psycopg.AsyncConnection | None) -> None:
    if connection is not None:
        with suppress(psycopg.Error):
            await connection.close()


def _is_database_away(error: Exception) -> bool:
    return isinstance(error, DatabaseError) or (isinstance(error, psycopg.Error) and is_connection_lost(error))


def _text(error: Exception, lane: Lane) -> str:
    if isinstance(error, TimeoutError):
        return f"not done within {lane.deadline_seconds:g} s"
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
