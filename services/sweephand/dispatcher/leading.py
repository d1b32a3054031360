"""Lead: begin a term, and run the tick loop and the leader's lanes inside it until the lead is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import psycopg
import structlog
from psycopg_pool import AsyncConnectionPool

from sweephand.app import App
from sweephand.dispatcher.lane_watch import LaneWatch
from sweephand.dispatcher.lanes import Lane, run_lane
from sweephand.dispatcher.leadership import Leadership
from sweephand.dispatcher.loop import RECONNECT_SECONDS, TickLoop
from sweephand.dispatcher.report import TickReporter
from sweephand.model.errors import DatabaseError
from sweephand.postgres import leader, sweeps
from sweephand.postgres.bounded import bounded
from sweephand.postgres.connect import connect_async, conninfo, unreachable
from sweephand.postgres.leader import Term
from sweephand.postgres.rescue import rescue
from sweephand.postgres.retention import retention
from sweephand.postgres.schema import check_schema_async
from sweephand.settings import Environment, Settings
from sweephand.telemetry import DispatcherMetrics, LeaderMetrics

_BEGIN_SECONDS = 10.0  # with the time to connect and to give up, less than the elector takes for a stall
_MAX_DISPATCHES = 8
_POOL_SECONDS = 10.0
_CLOSE_SECONDS = 0.5
_RESCUE_BATCH = 500
_LANE_TIMEOUT = timedelta(seconds=30)
_SHORT_INTERVAL = timedelta(seconds=60)


class Leading:
    """Be the work of an application's leader. One object serves all leaderships of a process, one at a time."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        *,
        identity: str,
        metrics: DispatcherMetrics,
        leader_metrics: LeaderMetrics,
        watch: LaneWatch,
    ) -> None:
        self._app = app
        self._settings = settings
        self._identity = identity
        self._metrics = metrics
        self._leader_metrics = leader_metrics
        self._watch = watch
        self._reporter = TickReporter(metrics)
        self._log = structlog.get_logger("sweephand.dispatcher")
        self._term: Term | None = None

    async def lead(self, leadership: Leadership) -> None:
        """Lead until cancelled. The elector calls it for each leadership.

        Raises:
            ExceptionGroup: with a FencedError inside, when a later term has begun.
        """
        term = await self._begin(leadership)
        self._term = term
        self._leader_metrics.term.set(term.number)
        self._log.info("term_began", term=term.number, sweeps=len(self._app.sweeps))
        self._warn_of_short_intervals(term.since)
        try:
            async with self._open_pool() as pool, asyncio.TaskGroup() as group:
                loop = TickLoop(
                    self._app.sweeps,
                    term=term,
                    pool=pool,
                    leadership=leadership,
                    reporter=self._reporter,
                    watch=self._watch,
                    poll_seconds=self._settings.poll_interval_seconds,
                )
                group.create_task(loop.run())
                for lane in self._lanes(term):
                    group.create_task(
                        run_lane(
                            lane,
                            database_url=self._settings.database_url,
                            metrics=self._metrics,
                            watch=self._watch,
                        )
                    )
        finally:
            self._term = None
            self._leader_metrics.term.set(0)
            self._log.info("term_ended", term=term.number)

    async def is_latest_term(self) -> bool:
        """Return whether nobody has begun a later term than the present one; asked after this process was frozen.

        Raises:
            DatabaseError: the database cannot be asked.
        """
        if self._term is None:
            return True
        async with await self._connect("fence") as connection:
            try:
                asking = leader.current(connection, name=self._app.name)
                found = await bounded(connection, asking, seconds=_BEGIN_SECONDS)
            except psycopg.Error as error:
                raise DatabaseError(unreachable(error)) from error
        return found is not None and found.number == self._term.number

    async def _begin(self, leadership: Leadership) -> Term:
        """Raise the term and register the sweeps; waits for a database that is away or not migrated."""
        problem: str | None = None
        while True:
            leadership.beat()
            try:
                async with await self._connect("term") as connection:
                    found = await bounded(connection, self._try_to_begin(connection), seconds=_BEGIN_SECONDS)
            except (DatabaseError, psycopg.Error, TimeoutError) as error:
                found = str(error).strip() or "PostgreSQL did not answer in time"
            if isinstance(found, Term):
                return found
            if found != problem:
                self._log.error("term_cannot_begin", reason=found)
                problem = found
            await asyncio.sleep(self._settings.poll_interval_seconds)

    async def _try_to_begin(self, connection: psycopg.AsyncConnection) -> Term | str:
        problem = await check_schema_async(connection)
        if problem is not None:
            return problem
        term = await leader.gain(connection, name=self._app.name, holder=self._identity)
        await sweeps.register(connection, term, self._app.sweeps.values())
        return term

    def _lanes(self, term: Term) -> tuple[Lane, ...]:
        async def rescue_once(connection: psycopg.AsyncConnection) -> bool:
            async with connection.transaction():
                await leader.fence(connection, term, statement_timeout=_LANE_TIMEOUT)
                report = await rescue(connection, rescue_after_seconds=self._settings.rescue_after_seconds, limit=_RESCUE_BATCH)
            for job in report.jobs:
                self._log.warning(
                    "job_rescued", job=job.job_id, kind=job.kind, attempt=job.attempt, state=job.state, reason=job.error
                )
            return report.is_complete

        async def retain_once(connection: psycopg.AsyncConnection) -> bool:
            # The batches commit one by one and are safe beside another leader's: the fence only saves work here.
            async with connection.transaction():
                await leader.fence(connection, term, statement_timeout=_LANE_TIMEOUT)
            report = await retention(
                connection,
                completed_hours=self._settings.completed_retention_hours,
                cancelled_hours=self._settings.cancelled_retention_hours,
                discarded_hours=self._settings.discarded_retention_hours,
                tick_days=self._settings.tick_retention_days,
                audit_days=self._settings.audit_retention_days,
            )
            deleted = {
                "jobs": report.jobs,
                "ticks": report.ticks,
                "workers": report.workers,
                "audit_entries": report.audit_entries,
            }
            if any(deleted.values()):
                self._log.info("history_deleted", **deleted)
            return report.is_complete

        return (
            Lane("rescue", every_seconds=5, deadline_seconds=60, run_once=rescue_once),
            Lane("retention", every_seconds=60, deadline_seconds=600, run_once=retain_once),
        )

    def _warn_of_short_intervals(self, since: datetime) -> None:
        if self._settings.environment is not Environment.PRODUCTION:
            return
        for sweep in self._app.sweeps.values():
            schedule = sweep.policy.schedule
            first = schedule.after(since, anchor=since)
            interval = schedule.after(first, anchor=since) - first
            if interval < _SHORT_INTERVAL:
                self._reporter.short_interval(sweep.name, interval=interval)

    @asynccontextmanager
    async def _open_pool(self) -> "AsyncIterator[AsyncConnectionPool[psycopg.AsyncConnection]]":
        """Give the tick loop's connections: one to read with, and one for each dispatch that may run at once."""
        pool: AsyncConnectionPool[psycopg.AsyncConnection] = AsyncConnectionPool(
            conninfo(self._settings.database_url, application_name="sweephand dispatcher ticks"),
            # Planned anew for each tick: a kept plan may be one for tables that have grown since.
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=1,
            max_size=1 + min(_MAX_DISPATCHES, max(1, len(self._app.sweeps))),
            timeout=_POOL_SECONDS,
            # The pool's own retries would wait twice as long each time, and after an outage of minutes for minutes more.
            reconnect_timeout=RECONNECT_SECONDS,
            open=False,
        )
        await pool.open()
        try:
            yield pool
        finally:
            await pool.close(timeout=_CLOSE_SECONDS)  # not for longer: it may be connecting to where nobody answers

    async def _connect(self, purpose: str) -> psycopg.AsyncConnection:
        return await connect_async(
            self._settings.database_url,
            application_name=f"sweephand dispatcher {purpose}",
            prepare=False,
        )
