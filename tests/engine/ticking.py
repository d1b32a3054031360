"""Lead without a loop: dispatch single ticks, and look at what they left in the database."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import LiteralString

import psycopg
from psycopg.rows import class_row

from sweephand import App
from sweephand.model.ticks import DueTick, Step, TickReason
from sweephand.postgres import leader, sweeps
from sweephand.postgres.connect import connect_async
from sweephand.postgres.dispatch import DispatchReport, dispatch
from sweephand.postgres.leader import Term

MINUTE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class StoredTick:
    """Be a tick as the ledger has it."""

    id: int
    sweep: str
    outcome: str
    reason: str
    cause: str | None
    covers: int
    enqueued: int
    skipped_duplicates: int
    refused: int
    scan_truncated: bool
    error: str | None
    term: int


class Ticker:
    """Be a leader that ticks when it is told to, a minute later by its planned times at each tick. For one thread."""

    def __init__(self, runner: asyncio.Runner, connection: psycopg.AsyncConnection, term: Term, *, app: App) -> None:
        self._runner = runner
        self._connection = connection
        self._app = app
        self.term = term

    def tick(self, sweep: str, *, expected_tick_at: datetime | None = None) -> DispatchReport:
        """Dispatch the sweep's next tick, whenever it is planned, or the one that was read before."""
        return self._runner.run(self._tick(sweep, expected_tick_at))

    def next_tick_at(self, sweep: str) -> datetime:
        """Return when the sweep's next tick is planned."""
        return self._runner.run(self._next_tick_at(sweep))

    def execute(self, statement: LiteralString, values: Mapping[str, object] | None = None) -> None:
        """Run a statement on the connection that the ticks use."""
        self._runner.run(self._execute(statement, values))

    async def _next_tick_at(self, name: str) -> datetime:
        snapshot = await sweeps.read_states(self._connection, app=self._app.name)
        return snapshot.states[name].next_tick_at

    async def _tick(self, name: str, expected_tick_at: datetime | None) -> DispatchReport:
        planned_at = expected_tick_at or await self._next_tick_at(name)
        due = DueTick(planned_at, TickReason.TICK)
        step = Step(skipped=(), due=due, next_tick_at=planned_at + MINUTE)
        return await dispatch(
            self._connection, self.term, sweep=self._app.sweeps[name], step=step, due=due, expected_tick_at=planned_at
        )

    async def _execute(self, statement: LiteralString, values: Mapping[str, object] | None) -> None:
        await self._connection.execute(statement, values)


@contextmanager
def leading(database_url: str, app: App, *, term: Term | None = None) -> Iterator[Ticker]:
    """Begin a term, register the application's sweeps and give the leader; with `term`, give a second one of that term."""
    with asyncio.Runner() as runner:
        if term is None:
            connection, term = runner.run(begin_term(database_url, app))
        else:
            connection = runner.run(connect_async(database_url, application_name="ticker"))
        try:
            yield Ticker(runner, connection, term, app=app)
        finally:
            runner.run(connection.close())


async def begin_term(database_url: str, app: App) -> tuple[psycopg.AsyncConnection, Term]:
    connection = await connect_async(database_url, application_name="ticker")
    term = await leader.gain(connection, name=app.name, holder="ticker")
    await sweeps.register(connection, term, app.sweeps.values())
    return connection, term


def stored_ticks(connection: psycopg.Connection) -> list[StoredTick]:
    """Return the whole ledger, by planned time."""
    with connection.cursor(row_factory=class_row(StoredTick)) as cursor:
        return cursor.execute("""
            SELECT id, sweep, outcome, reason, cause, covers, enqueued, skipped_duplicates, refused, scan_truncated, error, term
            FROM sweephand.tick ORDER BY planned_at, id""").fetchall()


def stored_args(connection: psycopg.Connection) -> list[dict[str, object]]:
    """Return the arguments of all jobs, by id."""
    return [dict(args) for (args,) in connection.execute("SELECT args FROM sweephand.job ORDER BY id").fetchall()]
