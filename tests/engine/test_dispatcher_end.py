"""The tick loop ends when its lead does, also when the cancellation that tells it gets lost on the way."""

import asyncio

import psycopg
from prometheus_client import CollectorRegistry
from psycopg_pool import AsyncConnectionPool

from sweephand.dispatcher.lane_watch import LaneWatch
from sweephand.dispatcher.leadership import Leadership
from sweephand.dispatcher.lease import SystemClock
from sweephand.dispatcher.loop import TickLoop
from sweephand.dispatcher.report import TickReporter
from sweephand.telemetry import DispatcherMetrics
from tests.engine.apps import secondly
from tests.engine.ticking import begin_term
from tests.support.waiting import until_async


class LosingPool(AsyncConnectionPool[psycopg.AsyncConnection]):
    """Lose the first cancellation, as Python 3.11's wait_for does when a connection comes at the same moment."""

    has_lost = False

    async def getconn(self, timeout: float | None = None) -> psycopg.AsyncConnection:  # noqa: ASYNC109 psycopg's own
        try:
            return await super().getconn(timeout)
        except asyncio.CancelledError:
            if self.has_lost:
                raise
            self.has_lost = True
            return await super().getconn(timeout)


async def test_a_lost_cancellation_does_not_keep_the_loop(module_database_url: str) -> None:
    app = secondly()
    connection, term = await begin_term(module_database_url, app)
    await connection.close()
    leadership = Leadership("me", clock=SystemClock(), trust_seconds=lambda: 10.0, stall_seconds=20.0, signal=lambda: None)
    async with LosingPool(module_database_url, kwargs={"autocommit": True}, min_size=1, max_size=1, open=False) as pool:
        loop = TickLoop(
            app.sweeps,
            term=term,
            pool=pool,
            leadership=leadership,
            reporter=TickReporter(DispatcherMetrics.create(CollectorRegistry())),
            watch=LaneWatch(),
            poll_seconds=0.05,
        )

        async def is_waiting() -> bool:
            return pool.get_stats().get("requests_waiting", 0) > 0

        async with pool.connection():
            running = asyncio.create_task(loop.run())
            await until_async(is_waiting, message="the loop waits for a connection")
            leadership.end()
            running.cancel()
            await until_async(lambda: asyncio.sleep(0, pool.has_lost), message="the cancellation is lost")
        done, _ = await asyncio.wait([running], timeout=30)

    assert done == {running}
    assert running.cancelled()
