"""Export what waits. Every replica does, whoever leads: with no leader the backlog must still be seen."""

import time
from collections.abc import Callable, Coroutine

import psycopg
import structlog

from sweephand.app import App
from sweephand.dispatcher.lanes import Lane
from sweephand.model.states import JobState
from sweephand.postgres import backlog
from sweephand.telemetry import BacklogMetrics, ClockReference, DispatcherMetrics

EVERY_SECONDS = 10.0
_UNFINISHED = (JobState.SCHEDULED, JobState.AVAILABLE, JobState.RUNNING, JobState.RETRYABLE)


def gauges_lane(app: App, *, metrics: BacklogMetrics, dispatcher_metrics: DispatcherMetrics) -> Lane:
    """Return the lane that reads the backlog every 10 s and sets the gauges."""
    return Lane(
        "gauges",
        every_seconds=EVERY_SECONDS,
        deadline_seconds=60,
        run_once=_reader(app, metrics=metrics, dispatcher_metrics=dispatcher_metrics),
    )


def _reader(
    app: App, *, metrics: BacklogMetrics, dispatcher_metrics: DispatcherMetrics
) -> Callable[[psycopg.AsyncConnection], Coroutine[object, object, bool]]:
    log = structlog.get_logger("sweephand.dispatcher")
    failing: set[str] = set()

    async def read_once(connection: psycopg.AsyncConnection) -> bool:
        await _show_queues(connection, app, metrics)
        for sweep in app.sweeps.values():
            try:
                found = await backlog.read_sweep(connection, sweep)
            except (psycopg.OperationalError, psycopg.InterfaceError):
                raise
            except Exception as error:  # noqa: BLE001 - an application's SELECT; the others are shown all the same
                if sweep.name not in failing:
                    log.warning("sweep_backlog_unknown", sweep=sweep.name, error=str(error).partition("\n")[0])
                failing.add(sweep.name)
                continue
            failing.discard(sweep.name)
            metrics.show_sweep(sweep.name, age_seconds=found.age_seconds or 0.0, rows=found.rows)
        for moments in await backlog.read_moments(connection, app=app.name, sweeps=app.sweeps):
            dispatcher_metrics.show_sweep(
                moments.sweep,
                next_tick_seconds=moments.next_tick_at.timestamp(),
                last_tick_seconds=moments.last_tick_at.timestamp() if moments.last_tick_at else None,
                last_missed_tick_seconds=moments.last_missed_at.timestamp() if moments.last_missed_at else None,
            )
        before = time.time()
        server = await backlog.read_clock(connection)
        offset = (before + time.time()) / 2 - server
        dispatcher_metrics.clock_offset_seconds.labels(ClockReference.POSTGRES.value).set(offset)
        return True

    return read_once


async def _show_queues(connection: psycopg.AsyncConnection, app: App, metrics: BacklogMetrics) -> None:
    for queue in await backlog.read_queues(connection, queues=app.queues()):
        metrics.queue_backlog_age_seconds.labels(queue.queue).set(queue.backlog_age_seconds or 0.0)
        metrics.queue_oldest_running_seconds.labels(queue.queue).set(queue.oldest_running_seconds or 0.0)
    jobs = await backlog.count_jobs(connection, queues=app.queues())
    for name in app.queues():
        for state in _UNFINISHED:
            metrics.queue_jobs.labels(name, state.value).set(jobs.get((name, state), 0))
    for table in await backlog.read_tables(connection):
        metrics.queue_table_bytes.labels(table.name).set(table.size_bytes)
        metrics.queue_dead_tuples.labels(table.name).set(table.dead_tuples)
    metrics.queue_stats_last_success_timestamp_seconds.set_to_current_time()
