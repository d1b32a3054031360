"""The application of these tests' worker processes. Its jobs leave a row in `effect`."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
from sqlalchemy import Integer, Select, column, select, values
from structlog import get_logger

from sweephand import App, JobContext, current_job
from tests.support import plain_jobs
from tests.support.waiting import until

_LONG_SECONDS = 300.0


def _report(job: JobContext, error: BaseException) -> None:
    get_logger().info("reported", failed_job=job.job_id, of_attempt=job.attempt, error_type=type(error).__name__)
    if "break the hook" in str(error):
        raise SystemExit(3)


app = App("lifecycle_tests", on_error=_report)

app.job(unique=None)(plain_jobs.noop)
app.job(unique=None)(plain_jobs.fail)
app.job(unique=None)(plain_jobs.end_by)
app.job(unique=None, queue="narrow", timeout=timedelta(minutes=5))(plain_jobs.hold)
app.job(unique=None, timeout=timedelta(seconds=1), kind="overrun")(plain_jobs.hold)


@contextmanager
def _transaction() -> Iterator[psycopg.Connection]:
    """Leave the effect, and commit with the block."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("INSERT INTO effect VALUES (%s, %s)", [current_job().job_id, current_job().attempt])
        yield connection


@app.job(unique=None)
def complete_itself() -> None:
    """Complete with the effect."""
    with _transaction() as connection:
        current_job().complete(connection)


@app.job(unique=None)
async def complete_itself_async() -> None:
    """Complete with the effect, on the event loop."""
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as connection:
        await connection.execute("INSERT INTO effect VALUES (%s, %s)", [current_job().job_id, current_job().attempt])
        await current_job().complete(connection)


@app.job(unique=None)
def complete_and_raise() -> None:
    """Fail after all is done."""
    complete_itself()
    raise ValueError("too late")


@app.job(unique=None)
def roll_back_and_return() -> None:
    """Take the completion back, and return all the same."""
    with _transaction() as connection:
        current_job().complete(connection)
        connection.rollback()


@app.job(unique=None)
def complete_and_fail_to_commit() -> None:
    """Fail inside the transaction."""
    with _transaction() as connection:
        current_job().complete(connection)
        raise ValueError("not this time")


@app.job(unique=None, max_attempts=2)
def die_before_the_commit() -> None:
    """Kill the worker between the effect and the commit, the first time."""
    with _transaction() as connection:
        current_job().complete(connection)
        if current_job().attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)


@app.job(unique=None)
def complete_when_open(gate: str) -> None:
    """Complete once the file is there."""
    with _transaction() as connection:
        until(Path(gate).exists, deadline_seconds=_LONG_SECONDS, message="the gate opens")
        current_job().complete(connection)


_left_open: list[psycopg.Connection] = []


@app.job(unique=None)
def leave_the_transaction_open() -> None:
    """Return without an end of the transaction."""
    connection = psycopg.connect(os.environ["DATABASE_URL"])
    connection.execute("INSERT INTO effect VALUES (%s, %s)", [current_job().job_id, current_job().attempt])
    current_job().complete(connection)
    _left_open.append(connection)


@app.job(unique=None)
def close_what_was_left_open() -> None:
    """Commit what the other job left."""
    _left_open.pop().commit()


@app.job(unique=None)
async def fail_async(message: str) -> None:
    """Fail on the event loop."""
    raise ValueError(message)


@app.job()
def tell_context(product_id: int) -> None:
    """Log which job this is."""
    job = current_job()
    get_logger().info("told", told_id=job.job_id, told_attempt=job.attempt, told_tick=job.tick_id, product_id=product_id)


@app.sweep(every=timedelta(minutes=1), enqueues=tell_context)
def stuck() -> Select[tuple[int]]:
    """Find product 7."""
    rows = values(column("product_id", Integer), name="stuck").data([(7,)])
    return select(rows.c.product_id).order_by(rows.c.product_id)


@app.job(unique=None, aliases=("tidy", "tidy_up"))
def clear_shelf(shelf_id: int) -> None:
    """Log which kind this was enqueued as."""
    get_logger().info("cleared", stored_kind=current_job().kind, shelf_id=shelf_id)
