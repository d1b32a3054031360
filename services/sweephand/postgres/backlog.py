"""Read what waits: queues, sweeps, the ledger's moments and the tables' sizes, for gauges."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import psycopg
from psycopg.rows import class_row
from sqlalchemy import Select

from sweephand.model.states import JobState
from sweephand.postgres.moments import utc
from sweephand.postgres.scan import literal_sql, selected
from sweephand.sweep import Sweep

ROWS_BOUND = 10_000
"""How far the rows of a sweep are counted; a gauge at this number says: at least so many."""

# Both ends come from an index: the oldest claimable job of each queue, and the queue's few running ones.
_QUEUES = """
SELECT name AS queue,
    greatest(0, extract(epoch FROM now() - (
        SELECT scheduled_at FROM sweephand.job
        WHERE queue = name AND state IN ('scheduled', 'available', 'retryable')
        ORDER BY scheduled_at LIMIT 1)))::float8 AS backlog_age_seconds,
    greatest(0, extract(epoch FROM now() - (
        SELECT min(claimed_at) FROM sweephand.job WHERE queue = name AND state = 'running')))::float8
        AS oldest_running_seconds
FROM unnest(%(queues)s::text[]) AS name
"""

_COUNTS = """
SELECT queue, state, count(*) AS jobs FROM sweephand.job
WHERE state IN ('scheduled', 'available', 'running', 'retryable') AND queue = ANY(%(queues)s)
GROUP BY queue, state
"""

# The text form is cast because the column's type is only known to the server; a moment without a time zone is UTC.
_AGE = """
SELECT extract(epoch FROM now() - CASE WHEN pg_typeof(sweephand_moment) = 'timestamp'::regtype
    THEN sweephand_moment::text::timestamp AT TIME ZONE 'UTC' ELSE sweephand_moment::text::timestamptz END)::float8
FROM ({oldest}) AS oldest WHERE pg_typeof(sweephand_moment) IN ('timestamp'::regtype, 'timestamptz'::regtype)
"""

_TABLES = """
SELECT relname::text AS name, pg_total_relation_size(relid) AS size_bytes, n_dead_tup AS dead_tuples
FROM pg_stat_user_tables WHERE schemaname = 'sweephand' AND relname IN ('job', 'job_attempt', 'tick')
"""

_MOMENTS = """
SELECT name AS sweep, next_tick_at,
    (SELECT max(planned_at) FROM sweephand.tick WHERE app = sweep.app AND sweep = sweep.name
        AND outcome IN ('ok', 'empty')) AS last_tick_at,
    (SELECT max(planned_at) FROM sweephand.tick WHERE app = sweep.app AND sweep = sweep.name
        AND cause IN ('no_leader', 'db_down', 'late')) AS last_missed_at
FROM sweephand.sweep WHERE app = %(app)s AND name = ANY(%(sweeps)s)
"""


@dataclass(frozen=True, slots=True)
class QueueBacklog:
    """Say how long a queue's oldest waiting and oldest running job have taken; None: there is none."""

    queue: str
    backlog_age_seconds: float | None
    oldest_running_seconds: float | None


@dataclass(frozen=True, slots=True)
class SweepBacklog:
    """Say what a sweep matches now; `age_seconds` is None when nothing matches or its order is not by a moment."""

    sweep: str
    age_seconds: float | None
    rows: int


@dataclass(frozen=True, slots=True)
class SweepMoments:
    """Say when a sweep ticks next and ticked last, and when its last missed tick was planned."""

    sweep: str
    next_tick_at: datetime
    last_tick_at: datetime | None
    last_missed_at: datetime | None


@dataclass(frozen=True, slots=True)
class TableSize:
    """Say how large a table is with its indexes and how many of its rows are dead, as PostgreSQL estimates."""

    name: str
    size_bytes: int
    dead_tuples: int


async def read_queues(connection: psycopg.AsyncConnection, *, queues: Sequence[str]) -> list[QueueBacklog]:
    """Return the ages of each queue."""
    async with connection.cursor(row_factory=class_row(QueueBacklog)) as cursor:
        return await (await cursor.execute(_QUEUES, {"queues": list(queues)})).fetchall()


async def count_jobs(connection: psycopg.AsyncConnection, *, queues: Sequence[str]) -> dict[tuple[str, JobState], int]:
    """Return how many unfinished jobs each queue has in each state; finished ones are history, and counting them costs."""
    rows = await (await connection.execute(_COUNTS, {"queues": list(queues)})).fetchall()
    return {(str(queue), JobState(state)): int(jobs) for queue, state, jobs in rows}


async def read_tables(connection: psycopg.AsyncConnection) -> list[TableSize]:
    """Return the sizes of the tables that grow."""
    async with connection.cursor(row_factory=class_row(TableSize)) as cursor:
        return await (await cursor.execute(_TABLES)).fetchall()


async def read_moments(connection: psycopg.AsyncConnection, *, app: str, sweeps: Iterable[str]) -> list[SweepMoments]:
    """Return the ledger's moments of the application's sweeps."""
    async with connection.cursor(row_factory=class_row(SweepMoments)) as cursor:
        rows = await (await cursor.execute(_MOMENTS, {"app": app, "sweeps": list(sweeps)})).fetchall()
    return [
        replace(
            row,
            next_tick_at=utc(row.next_tick_at),
            last_tick_at=None if row.last_tick_at is None else utc(row.last_tick_at),
            last_missed_at=None if row.last_missed_at is None else utc(row.last_missed_at),
        )
        for row in rows
    ]


async def read_sweep(connection: psycopg.AsyncConnection, sweep: Sweep) -> SweepBacklog:
    """Return how many rows the sweep matches now, up to ROWS_BOUND, and how old the first of them is.

    Raises:
        AppError: the sweep's function fails, or a value in its SELECT has no literal form.
    """
    found = literal_sql(sweep, selected(sweep))
    bounded = f"SELECT count(*) FROM (SELECT FROM ({found}) AS found LIMIT {ROWS_BOUND}) AS bounded"  # noqa: S608 (compiled)
    rows = await (await connection.execute(bounded, {})).fetchone()  # {}: the compiled text doubles percent signs
    count = 0 if rows is None else int(rows[0])
    age = await _age_of_first(connection, sweep) if count else None
    return SweepBacklog(sweep=sweep.name, age_seconds=age, rows=count)


async def _age_of_first(connection: psycopg.AsyncConnection, sweep: Sweep) -> float | None:
    """Return how long ago the moment was that the sweep's first row is ordered by; None if its order is by something else."""
    select = selected(sweep)
    order = sweep.first_order(select)
    if not isinstance(select, Select) or order is None:
        return None
    # Added to the columns, not instead of them: the order may name one of them.
    oldest = literal_sql(sweep, select.add_columns(order.label("sweephand_moment")).limit(1))
    row = await (await connection.execute(_AGE.replace("{oldest}", oldest), {})).fetchone()
    return None if row is None or row[0] is None else max(0.0, float(row[0]))


async def read_clock(connection: psycopg.AsyncConnection) -> float:
    """Return the database's clock, in Unix seconds."""
    row = await (await connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8")).fetchone()
    if row is None:
        raise psycopg.DataError("PostgreSQL answered no row to a question for its clock")
    return float(row[0])
