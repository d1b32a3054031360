"""All of it works on every kind of connection that can enqueue, and without what only servers need."""

import subprocess
import sys
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

import pytest
from sqlalchemy import Integer, NullPool, Select, column, create_engine, select, text, values
from sqlalchemy.orm import Session

from sweephand import App, current_job, enqueue
from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.connect import sqlalchemy_url
from sweephand.testing import (
    assert_enqueued,
    assert_not_enqueued,
    drain,
    enqueued,
    let_pass,
    perform,
    run_sweep,
    sweep_rows,
)
from tests.support.transactions import CONNECTION_KINDS, AnyConnection, ConnectionKind, in_transaction

T = TypeVar("T")


async def settled(value: T | Awaitable[T]) -> T:
    return await value if isinstance(value, Awaitable) else value


@pytest.mark.parametrize("kind", CONNECTION_KINDS)
async def test_every_kind_of_connection_will_do(database_url: str, kind: ConnectionKind) -> None:
    app = App("kinds")
    done: list[str] = []

    @app.job(max_attempts=2)
    def mend(product_id: int) -> None:
        done.append(f"{product_id}.{current_job().attempt}")
        if product_id == 9:
            raise ValueError("no stock")

    @app.sweep(every=timedelta(minutes=1), enqueues=mend)
    def stuck() -> Select[tuple[int]]:
        rows = values(column("product_id", Integer), name="rows").data([(7,), (8,)])
        return select(rows.c.product_id).where(rows.c.product_id % 1 == 0).order_by(rows.c.product_id)

    async def scenario(connection: AnyConnection) -> None:
        assert await settled(sweep_rows(connection, stuck)) == [{"product_id": 7}, {"product_id": 8}]
        await settled(enqueue(connection, mend, product_id=7))
        tick = await settled(run_sweep(connection, stuck))
        assert (tick.enqueued, tick.skipped_duplicates) == (1, 1)
        await settled(assert_enqueued(connection, mend, product_id=8))
        await settled(assert_not_enqueued(connection, mend, product_id=9))
        assert await settled(enqueued(connection, mend)) == [{"product_id": 7}, {"product_id": 8}]
        report = await settled(drain(connection, app))
        assert report.completed == 2
        await settled(enqueue(connection, mend.after(timedelta(hours=1)), product_id=9))
        await settled(let_pass(connection, timedelta(minutes=30)))
        report = await settled(drain(connection, app, until=timedelta(hours=1), on_failure="retry"))
        assert report.count(AttemptOutcome.DISCARDED) == 1
        await settled(perform(connection, mend, product_id=10))

    await in_transaction(kind, database_url, scenario)

    assert done == ["7.1", "8.1", "9.1", "9.2", "10.1"]


@pytest.mark.parametrize("kind", ["AsyncSession", "AsyncConnection", "async psycopg"])
async def test_async_jobs_run_on_the_loop_of_the_test(database_url: str, kind: ConnectionKind) -> None:
    app = App("kinds")

    @app.job()
    async def complete_itself() -> None:
        await settled(current_job().complete(open_connections[-1]))

    open_connections: list[AnyConnection] = []

    async def scenario(connection: AnyConnection) -> None:
        open_connections.append(connection)
        await settled(enqueue(connection, complete_itself))
        report = await settled(drain(connection, app))
        assert report.completed == 1

    await in_transaction(kind, database_url, scenario)


def test_a_session_that_a_job_broke_is_of_use_again(database_url: str) -> None:
    app = App("kinds")

    @app.job()
    def break_session() -> None:
        session.execute(text("SELECT 1 / 0"))

    with Session(create_engine(sqlalchemy_url(database_url), poolclass=NullPool)) as session, session.begin():
        enqueue(session, break_session)
        report = drain(session, app, on_failure="retry")
        assert report.count(AttemptOutcome.RETRIED) == 1
        assert session.execute(text("SELECT state FROM sweephand.job")).scalars().all() == ["retryable"]


def test_the_kit_loads_neither_the_workers_nor_the_dispatchers_libraries() -> None:
    program = "import sys, sweephand.testing; print(sorted({'dramatiq', 'kopf', 'fastapi', 'uvicorn'} & sys.modules.keys()))"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
