"""Tick: read the sweeps' states, plan each, carry out what is due, and sleep until the next planned time.

The loop runs inside one term. It decides nothing by itself: `model/ticks.py` says which ticks run, and
`postgres/dispatch.py` carries a tick out in one transaction that the term fences. Time is the database's clock; only the
sleep is this machine's, and monotonic.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from sweephand.dispatcher.lane_watch import LaneWatch
from sweephand.dispatcher.leadership import Leadership
from sweephand.dispatcher.report import TickReporter
from sweephand.model.errors import ConflictError, FencedError, SweephandError
from sweephand.model.ticks import LeaderHistory, Period, Step, TickState, plan
from sweephand.postgres import ledger, sweeps
from sweephand.postgres.bounded import bounded
from sweephand.postgres.connect import is_connection_lost
from sweephand.postgres.dispatch import dispatch
from sweephand.postgres.leader import Term, fence
from sweephand.sweep import Sweep

# What the client waits beyond the server's own statement timeout, so that a black hole cannot hold a sweep for ever.
_ANSWER_SECONDS = 10.0
_READ_SECONDS = 10.0
RECONNECT_SECONDS = 3.0
"""How long the pool tries to connect, and the loop waits for it, before the loop asks anew."""
_LANE = "ticks"
_PATIENCE_SECONDS = 15.0  # more than a turn may take, less than the elector gives a leader that is stuck
_LEDGER_TIMEOUT = timedelta(seconds=10)


class TickLoop:
    """Tick the sweeps of one application for the length of one term."""

    def __init__(
        self,
        app_sweeps: Mapping[str, Sweep],
        *,
        term: Term,
        pool: "AsyncConnectionPool[psycopg.AsyncConnection]",
        leadership: Leadership,
        reporter: TickReporter,
        watch: LaneWatch,
        poll_seconds: float,
    ) -> None:
        self._sweeps = app_sweeps
        self._term = term
        self._pool = pool
        self._leadership = leadership
        self._reporter = reporter
        self._watch = watch
        self._poll_seconds = poll_seconds
        self._wake = asyncio.Event()
        self._busy: set[str] = set()
        self._started: set[str] = set()
        self._failing: set[str] = set()
        self._previous: dict[str, Period] = {}
        self._outage = _Outage(reporter, since=term.since)
        # One connection is left for reading, so that slow scans never keep the other sweeps from being planned.
        self._room = asyncio.Semaphore(max(1, pool.max_size - 1))

    async def run(self) -> None:
        """Tick until cancelled.

        Raises:
            ExceptionGroup: with a FencedError inside, when a later term has begun.
        """
        self._watch.begin(_LANE, patience_seconds=_PATIENCE_SECONDS)
        try:
            await self._come_around_for_ever()
        finally:
            self._watch.end(_LANE)

    async def _come_around_for_ever(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                if self._leadership.has_ended():
                    # The cancellation that says so can get lost: in Python 3.11, in the wait_for that the pool waits with.
                    raise asyncio.CancelledError
                self._wake.clear()
                seconds = self._poll_seconds
                try:
                    async with self._pool.connection(RECONNECT_SECONDS) as connection:
                        reading = sweeps.read_states(connection, app=self._term.name)
                        snapshot = await bounded(connection, reading, seconds=_READ_SECONDS)
                except (psycopg.Error, PoolTimeout, TimeoutError) as error:
                    self._outage.begin(error)
                else:
                    if not self._failing:
                        self._outage.end(snapshot.now)
                    self._reporter.came_around(now_seconds=snapshot.now.timestamp())
                    for sweep in self._sweeps.values():
                        self._start_if_due(group, sweep, snapshot)
                    seconds = self._seconds_to_next(snapshot)
                self._leadership.beat()
                self._watch.came_around(_LANE)
                # Not wait_for: in Python 3.11 it loses a cancellation that comes together with the wake-up.
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._wake.wait()

    def _start_if_due(self, group: asyncio.TaskGroup, sweep: Sweep, snapshot: sweeps.Snapshot) -> None:
        state = snapshot.states.get(sweep.name)
        if state is None or sweep.name in self._busy:
            return
        history = LeaderHistory(
            since=self._term.since,
            is_first_of_term=sweep.name not in self._started,
            previous_dispatch=self._previous.get(sweep.name),
            database_down=self._outage.latest(snapshot.now),
        )
        step = plan(sweep.policy, state, history, now=snapshot.now)
        if step is None:
            if sweep.policy.run_on_start and history.is_first_of_term and state.paused_at is None:
                self._reporter.run_on_start_refused(sweep.name)
            self._started.add(sweep.name)
            return
        self._busy.add(sweep.name)
        group.create_task(self._carry_out(sweep, state, step, snapshot.now))

    async def _carry_out(self, sweep: Sweep, state: TickState, step: Step, now: datetime) -> None:
        """Run one step in its transaction. What goes wrong with it is the ledger's; the loop plans again after it."""
        try:
            async with self._room:
                await self._carry_out_in_time(sweep, state, step, now)
        finally:
            self._busy.discard(sweep.name)
            self._wake.set()

    async def _carry_out_in_time(self, sweep: Sweep, state: TickState, step: Step, now: datetime) -> None:
        try:
            async with self._pool.connection() as connection:
                seconds = sweep.statement_timeout.total_seconds() + _ANSWER_SECONDS
                await bounded(connection, self._step(connection, sweep, state, step, now=now), seconds=seconds)
            self._started.add(sweep.name)
            self._failing.discard(sweep.name)
        except ConflictError:
            # The sweep has moved on meanwhile, and the next plan starts from where it is. Not at once: were the states read
            # from a server that lags behind, they would be the same again.
            await asyncio.sleep(self._poll_seconds)
        except FencedError as error:
            await self._record_fenced(sweep, step, now, error)
            self._leadership.fenced()
            raise
        except Exception as error:  # noqa: BLE001 - an application's SELECT may raise anything: it is this sweep's failed tick
            if _is_connection_lost(error) or not await self._record_error(sweep, state, step, now, error):
                # Nothing is known of the tick: it stays due, and is planned again when the database answers.
                self._failing.add(sweep.name)
                self._outage.begin(error, missed=step.due.planned_at if step.due else now)
                if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
                    await self._pool.drain()  # its sessions would stay with a server that is no longer the primary
                await asyncio.sleep(self._poll_seconds)

    async def _step(
        self, connection: psycopg.AsyncConnection, sweep: Sweep, state: TickState, step: Step, *, now: datetime
    ) -> None:
        if step.due is None:
            async with connection.transaction():
                await fence(connection, self._term, statement_timeout=_LEDGER_TIMEOUT)
                await ledger.move_on(connection, self._term, sweep=sweep.name, step=step, expected_tick_at=state.next_tick_at)
            self._reporter.moved_on(sweep.name, step)
            return
        try:
            report = await dispatch(
                connection, self._term, sweep=sweep, step=step, due=step.due, expected_tick_at=state.next_tick_at
            )
        except ConflictError:
            await self._pass_over(connection, sweep, state, step)
            return
        self._previous[sweep.name] = Period(now, report.ended_at)
        self._reporter.dispatched(report, step)

    async def _pass_over(self, connection: psycopg.AsyncConnection, sweep: Sweep, state: TickState, step: Step) -> None:
        """Accept that somebody else, or a commit whose answer was lost, has done the tick; the next plan starts from there."""
        async with connection.transaction():
            await fence(connection, self._term, statement_timeout=_LEDGER_TIMEOUT)
            await ledger.pass_over(connection, self._term, sweep=sweep.name, step=step, expected_tick_at=state.next_tick_at)

    async def _record_error(self, sweep: Sweep, state: TickState, step: Step, now: datetime, error: Exception) -> bool:
        """Write a dispatch that failed into the ledger; returns whether that could be done."""
        if step.due is None:
            return False
        text = _text(error)
        try:
            async with self._pool.connection() as connection:
                recording = self._write_error(connection, sweep, state, step, started_at=now, error=text)
                ended_at = await bounded(connection, recording, seconds=_ANSWER_SECONDS)
        except ConflictError:
            return True  # the dispatch was committed after all; only the answer was lost
        except FencedError:
            self._leadership.fenced()
            raise
        except (psycopg.Error, PoolTimeout, TimeoutError):
            return False
        self._started.add(sweep.name)
        self._failing.discard(sweep.name)
        self._previous[sweep.name] = Period(now, ended_at)
        is_timeout = isinstance(error, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable)
        self._reporter.failed(sweep.name, due=step.due, error=text, is_timeout=is_timeout)
        return True

    async def _write_error(
        self, connection: psycopg.AsyncConnection, sweep: Sweep, state: TickState, step: Step, *, started_at: datetime, error: str
    ) -> datetime:
        async with connection.transaction():
            await fence(connection, self._term, statement_timeout=_LEDGER_TIMEOUT)
            return await ledger.record_error(
                connection,
                self._term,
                sweep=sweep.name,
                step=step,
                expected_tick_at=state.next_tick_at,
                started_at=started_at,
                error=error,
            )

    async def _record_fenced(self, sweep: Sweep, step: Step, now: datetime, error: FencedError) -> None:
        if step.due is None:
            return
        self._reporter.fenced(sweep.name, due=step.due)
        with suppress(psycopg.Error, PoolTimeout, TimeoutError):  # it only tells of a try that changed nothing
            async with self._pool.connection() as connection:
                recording = ledger.record_fenced(
                    connection, self._term, sweep=sweep.name, step=step, started_at=now, error=str(error)
                )
                await bounded(connection, recording, seconds=_ANSWER_SECONDS)

    def _seconds_to_next(self, snapshot: sweeps.Snapshot) -> float:
        """Return how long to sleep: to the next planned time, at most a poll interval, for what operators ask meanwhile."""
        waits = [
            (state.next_tick_at - snapshot.now).total_seconds()
            for name, state in snapshot.states.items()
            if name in self._sweeps and name not in self._busy
        ]
        return max(0.0, min([self._poll_seconds, *waits]))


class _Outage:
    """Remember when the database could not be reached, by its own clock as far as that can be known."""

    def __init__(self, reporter: TickReporter, *, since: datetime) -> None:
        self._reporter = reporter
        self._last_answer = since
        self._is_down = False
        self._last: Period | None = None

    def begin(self, error: Exception, *, missed: datetime | None = None) -> None:
        """Note that the database did not answer; the outage began after its last answer, or with the tick that it failed."""
        if not self._is_down:
            self._is_down = True
            if missed is not None:
                self._last_answer = min(self._last_answer, missed)
            self._reporter.database_lost(_text(error))

    def end(self, now: datetime) -> None:
        """Note that the database answered, at `now` by its clock."""
        if self._is_down:
            self._is_down = False
            self._last = Period(self._last_answer, now)
            self._reporter.database_back(seconds=(now - self._last_answer).total_seconds())
        self._last_answer = now

    def latest(self, now: datetime) -> Period | None:
        """Return the outage that lasts at `now`, or the last one: a database that only refuses writes still says what is due."""
        return Period(self._last_answer, now) if self._is_down else self._last


def _is_connection_lost(error: Exception) -> bool:
    """Tell whether the failure says nothing of the statement."""
    return isinstance(error, TimeoutError | PoolTimeout) or (isinstance(error, psycopg.Error) and is_connection_lost(error))


def _text(error: Exception) -> str:
    """Return one line for people about a failure."""
    if isinstance(error, TimeoutError | PoolTimeout):
        return "PostgreSQL did not answer in time"
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return lines[0] if isinstance(error, psycopg.Error | SweephandError) else f"{type(error).__name__}: {lines[0]}"
