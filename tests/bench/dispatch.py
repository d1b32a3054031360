"""How a dispatch of 100 stuck rows grows with the table that they lie in: 1,000 products against 1,000,000."""

import asyncio
import statistics
import time
from datetime import timedelta

import psycopg

from storefront.adapters.postgres.migrate import migrate as migrate_storefront
from storefront.adapters.postgres.stuck_publications import stuck_publications
from sweephand import App, Sweep
from sweephand.model.ticks import LeaderHistory, plan
from sweephand.postgres import leader, sweeps
from sweephand.postgres.connect import conninfo
from sweephand.postgres.dispatch import dispatch
from sweephand.postgres.migrate import migrate
from tests.bench.figures import Figure
from tests.support.databases import Databases

_APP = "bench"
_ROUNDS = 15
_STUCK = 100
_FILL = """
INSERT INTO storefront.product (name, description, price_cents, created_at, published_at)
SELECT 'product ' || n, '', 100, now() - interval '1 day' + n * interval '10 ms',
    CASE WHEN n %% (%(products)s / %(stuck)s) <> 0 THEN now() END
FROM generate_series(1, %(products)s) AS n
"""


def measure(server_url: str) -> list[Figure]:
    """Return the medians of both tables and their ratio; the rounds alternate."""
    databases = Databases(server_url, run_id="bench")
    urls = {size: databases.create_empty() for size in (1_000, 1_000_000)}
    try:
        for size, url in urls.items():
            _fill(url, products=size)
        seconds: dict[int, list[float]] = {size: [] for size in urls}
        for _ in range(_ROUNDS):
            for size, url in urls.items():
                seconds[size].append(asyncio.run(_dispatch_once(url)))
    finally:
        databases.drop_all()
    small, large = (statistics.median(seconds[size]) * 1000 for size in urls)
    return [
        Figure("dispatch of 100 rows among 1,000 products", small, "ms"),
        Figure("dispatch of 100 rows among 1,000,000 products", large, "ms"),
        Figure("the second by the first", large / small, "×", bound=3),
    ]


def _fill(url: str, *, products: int) -> None:
    migrate(url)
    migrate_storefront(url)
    with psycopg.connect(conninfo(url, application_name="bench"), autocommit=True) as connection:
        connection.execute(_FILL, {"products": products, "stuck": _STUCK})
        connection.execute("VACUUM ANALYZE")


def _sweep() -> Sweep:
    app = App(_APP)

    @app.job()
    def publish_product(product_id: int) -> None:
        del product_id

    return app.sweep(every=timedelta(seconds=60), limit=_STUCK, enqueues=publish_product)(stuck_publications)


async def _dispatch_once(url: str) -> float:
    """Return the seconds of one dispatch transaction that enqueues all of the stuck rows anew."""
    sweep = _sweep()
    async with await psycopg.AsyncConnection.connect(conninfo(url, application_name="bench"), autocommit=True) as connection:
        await connection.execute("TRUNCATE sweephand.job")
        term = await leader.gain(connection, name=_APP, holder="bench")
        await sweeps.register(connection, term, [sweep])
        await connection.execute("UPDATE sweephand.sweep SET run_requested_at = clock_timestamp()")
        snapshot = await sweeps.read_states(connection, app=_APP)
        state = snapshot.states[sweep.name]
        step = plan(sweep.policy, state, LeaderHistory(since=term.since, is_first_of_term=False), now=snapshot.now)
        if step is None or step.due is None:
            raise RuntimeError("the sweep was asked to run and is not due")
        start = time.perf_counter()
        report = await dispatch(connection, term, sweep=sweep, step=step, due=step.due, expected_tick_at=state.next_tick_at)
        seconds = time.perf_counter() - start
    if report.enqueued != _STUCK:
        raise RuntimeError(f"{report.enqueued} jobs enqueued where {_STUCK} products are stuck")
    return seconds
