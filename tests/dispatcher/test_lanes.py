"""A lane that is stuck is told of, by name and reason, and one that does its rounds is not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
import pytest
from prometheus_client import CollectorRegistry

from sweephand.dispatcher.lane_watch import LaneWatch
from sweephand.dispatcher.lanes import Lane, run_lane
from sweephand.telemetry import DispatcherMetrics
from tests.support.network import DatabaseGate
from tests.support.waiting import until_async


@asynccontextmanager
async def running(statement: Callable[[], bytes], *, database_url: str) -> AsyncIterator[LaneWatch]:
    """Run a lane whose round is a statement, which may take 0.3 s."""
    watch = LaneWatch()

    async def run_once(connection: psycopg.AsyncConnection) -> bool:
        await connection.execute(statement())
        return True

    lane = Lane("retention", every_seconds=0.01, deadline_seconds=0.3, run_once=run_once)
    metrics = DispatcherMetrics.create(CollectorRegistry())
    task = asyncio.create_task(run_lane(lane, database_url=database_url, metrics=metrics, watch=watch))
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.wait({task})


async def says(watch: LaneWatch, problem: str | None) -> None:
    async def is_said() -> bool:
        said = watch.problem()
        return said == problem if problem is None or said is None else problem in said

    await until_async(is_said, message=f"the watch says: {problem}")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (b"SELECT pg_sleep(60)", "times in a row: not done within 0.3 s"),
        (b"SELECT 1 / 0", "times in a row: division by zero"),
    ],
)
async def test_a_lane_whose_rounds_overrun_or_fail_is_stuck_until_one_succeeds(
    database_url: str, statement: bytes, reason: str
) -> None:
    rounds = [statement]

    async with running(lambda: rounds[-1], database_url=database_url) as watch:
        await says(watch, f"the retention lane has failed 3 {reason}")
        rounds.append(b"SELECT 1")
        await says(watch, None)


async def test_a_database_that_is_away_is_no_lanes_fault(database_gate: DatabaseGate) -> None:
    rounds = 0

    def count() -> bytes:
        nonlocal rounds
        rounds += 1
        return b"SELECT pg_terminate_backend(pg_backend_pid())"

    async def has_failed_often() -> bool:
        return rounds > 5

    async with running(count, database_url=database_gate.url) as watch:
        await until_async(has_failed_often, message="rounds fail")

        assert watch.problem() is None


def test_a_lane_that_does_not_come_around_is_stuck_until_it_ends() -> None:
    watch = LaneWatch()
    watch.begin("ticks", patience_seconds=-1)

    assert watch.problem() == "the ticks lane has not come around for 0 s"
    watch.end("ticks")
    assert watch.problem() is None
