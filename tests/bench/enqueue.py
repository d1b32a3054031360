"""What one enqueue costs beside the least that psycopg can do: an INSERT with NOTIFY into a bare table.

There are two such floors. The bare statement that commits by itself is the floor of the shared harness: one round trip. An
enqueue joins a transaction that its caller opens and ends, three round trips, so the bare statement between BEGIN and COMMIT is
the floor of like with like; what is promised is measured by that one, and the other ratio is shown beside it.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from sweephand import App, enqueue, enqueue_many
from sweephand.postgres.connect import conninfo, sqlalchemy_url
from sweephand.postgres.migrate import migrate
from tests.bench.figures import Figure
from tests.support.databases import Databases

_JOBS = 50
_ROUNDS = 70
_BATCHES = 120
_BATCH = 100
_BARE = """
CREATE TABLE bare (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state smallint NOT NULL DEFAULT 0, key text,
    payload jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX bare_open ON bare (id) WHERE state = 0;
CREATE UNIQUE INDEX bare_key ON bare (key) WHERE key IS NOT NULL AND state < 2
"""
_PUT = """
WITH put AS (INSERT INTO bare (payload) VALUES (jsonb_build_object('n', %s::int)) RETURNING id)
SELECT pg_notify('bare', '') FROM put
"""
_PUT_MANY = """
WITH put AS (INSERT INTO bare (key, payload) SELECT key, '{"n": 0}' FROM unnest(%s::text[]) AS key
    ON CONFLICT (key) WHERE key IS NOT NULL AND state < 2 DO NOTHING RETURNING id),
counted AS (SELECT count(*) AS n FROM put)
SELECT n, CASE WHEN n > 0 THEN pg_notify('bare', '') END FROM counted
"""


def measure(server_url: str) -> list[Figure]:
    """Return the rate of the bare INSERT, and the product's as shares of it, by lower quartile of alternating rounds.

    The quartile and not the median, since whatever else the machine does can only add.
    """
    databases = Databases(server_url, run_id="bench")
    url = databases.create_clone(migrate)
    try:
        with ExitStack() as closing:
            return _measure(url, closing)
    finally:
        databases.drop_all()


def _measure(url: str, closing: ExitStack) -> list[Figure]:
    app = App("bench")

    @app.job(unique=None)
    def plain(n: int) -> None:
        del n

    @app.job()
    def keyed(key: str) -> None:
        del key

    connection = closing.enter_context(
        psycopg.connect(conninfo(url, application_name="bench"), autocommit=True, prepare_threshold=1)
    )
    connection.execute(_BARE)
    engine = create_engine(sqlalchemy_url(url))
    closing.callback(engine.dispose)
    core = closing.enter_context(engine.connect())

    def alone(n: int) -> None:
        connection.execute(_PUT, (n,))

    def bare(n: int) -> None:
        with connection.transaction():
            connection.execute(_PUT, (n,))

    def on_psycopg(n: int) -> None:
        with connection.transaction():
            enqueue(connection, plain, n=n)

    def on_core(n: int) -> None:
        with core.begin():
            enqueue(core, plain, n=n)

    def on_session(n: int) -> None:
        with Session(engine) as session, session.begin():
            enqueue(session, plain, n=n)

    def alone_batch(name: str) -> None:
        connection.execute(_PUT_MANY, ([f"alone {name}-{n}" for n in range(_BATCH)],)).fetchall()

    def bare_batch(name: str) -> None:
        with connection.transaction():
            connection.execute(_PUT_MANY, ([f"bare {name}-{n}" for n in range(_BATCH)],)).fetchall()

    def batch(name: str) -> None:
        with connection.transaction():
            enqueue_many(connection, keyed, [{"key": f"{name}-{n}"} for n in range(_BATCH)])

    puts = {"alone": alone, "bare": bare, "psycopg": on_psycopg, "core": on_core, "session": on_session}
    seconds = _by_round(puts)
    fresh, again = _batches({"alone": alone_batch, "bare": bare_batch, "product": batch})
    bare_seconds = seconds["bare"]
    return [
        Figure("a bare INSERT that commits by itself", 1 / seconds["alone"], "per s"),
        Figure("the same between BEGIN and COMMIT", 1 / bare_seconds, "per s"),
        Figure("enqueue on a psycopg connection, of that", bare_seconds / seconds["psycopg"], "×", bound=0.8, is_floor=True),
        Figure("… through a SQLAlchemy Connection", bare_seconds / seconds["core"], "×", bound=0.5, is_floor=True),
        Figure("… through an ORM Session", bare_seconds / seconds["session"], "×", bound=0.25, is_floor=True),
        *(
            Figure(f"… {how}, of the first", seconds["alone"] / seconds[name], "×")
            for name, how in {"bare": "bare", "psycopg": "psycopg", "core": "Connection", "session": "Session"}.items()
        ),
        Figure("a bare batch of 100 between BEGIN and COMMIT", fresh["bare"] * 1000, "ms"),
        Figure("enqueue_many of 100 new, by that", fresh["product"] / fresh["bare"], "×", bound=1.3),
        Figure("… by the batch that commits by itself", fresh["product"] / fresh["alone"], "×"),
        Figure("the same bare batch again", again["bare"] * 1000, "ms"),
        Figure("enqueue_many of the same 100 again, by that", again["product"] / again["bare"], "×", bound=1.5),
        Figure("… by the batch that commits by itself, again", again["product"] / again["alone"], "×"),
    ]


def _by_round(puts: Mapping[str, Callable[[int], None]]) -> dict[str, float]:
    """Return the seconds of one call of each, over rounds that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in puts}
    for _ in range(_ROUNDS):
        for name, put in puts.items():
            start = time.perf_counter()
            for n in range(_JOBS):
                put(n)
            seconds[name].append((time.perf_counter() - start) / _JOBS)
    return _lower_quartiles(seconds)


def _batches(puts: Mapping[str, Callable[[str], None]]) -> tuple[dict[str, float], dict[str, float]]:
    fresh: dict[str, list[float]] = {name: [] for name in puts}
    again: dict[str, list[float]] = {name: [] for name in puts}
    for number in range(_BATCHES):
        for name, put in puts.items():
            for seconds in (fresh, again):
                start = time.perf_counter()
                put(f"batch {number}")
                seconds[name].append(time.perf_counter() - start)
    return _lower_quartiles(fresh), _lower_quartiles(again)


def _lower_quartiles(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.quantiles(values, n=4)[0] for name, values in seconds.items()}
