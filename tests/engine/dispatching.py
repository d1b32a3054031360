"""Run a whole dispatcher in the test's own event loop, and read what it did from the database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import LiteralString

import psycopg

from sweephand import App
from sweephand.dispatcher.lease import ProcessLease
from sweephand.dispatcher.process import Dispatcher
from sweephand.settings import Settings


@asynccontextmanager
async def dispatching(database_url: str, app: App, *, poll_interval_seconds: float = 0.05) -> AsyncIterator[Dispatcher]:
    """Run the application's dispatcher for the block; it leads at once and always."""
    settings = Settings.model_validate(
        {
            "database_url": database_url,
            "elector": "always",
            "metrics_port": 0,
            "api_host": "127.0.0.1",
            "poll_interval_seconds": poll_interval_seconds,
            "retry_period_seconds": 0.2,
            "identity": "in-process",
            "prepared_statements": False,
        }
    )
    dispatcher = Dispatcher(app, settings)
    store = ProcessLease()
    elector = dispatcher.make_elector(store)
    running = asyncio.create_task(dispatcher.lead_with(elector))
    try:
        yield dispatcher
    finally:
        elector.stop()
        await running
        dispatcher.close()


async def change(connection: psycopg.Connection, statement: LiteralString) -> None:
    """Execute a statement in a thread: it may wait for a transaction that this very event loop carries out."""
    await asyncio.to_thread(connection.execute, statement)


async def request_run(connection: psycopg.Connection) -> None:
    """Ask for a run of every sweep now, as an operator does."""
    await change(connection, "UPDATE sweephand.sweep SET run_requested_at = clock_timestamp(), run_requested_by = 'test'")
