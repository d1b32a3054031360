"""What one enqueue costs beside the least that psycopg can do: an INSERT with NOTIFY into a bare table."""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack

import psycopg
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from sweephand import App, enqueue, enqueue_many
from sweephand.postgres.connect import conninfo, sqlalchemy_url
from sweephand.postgres.migrate import migrate
from tests.bench.figures import Figure
from tests.support.databases import Databases

_JOBS = 500
_ROUNDS = 7
_BATCHES = 20
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
    """Return the rate of the bare INSERT, and the product's as shares of it, by median of alternating rounds."""
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

    def bare(n: int) -> None:
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

    def bare_batch(name: str) -> None:
        connection.execute(_PUT_MANY, ([f"{name}-{n}" for n in range(_BATCH)],))

    def batch(name: str) -> None:
        with connection.transaction():
            enqueue_many(connection, keyed, [{"key": f"{name}-{n}"} for n in range(_BATCH)])

    rates = _medians({"bare": bare, "psycopg": on_psycopg, "core": on_core, "session": on_session})
    fresh, again = _batches({"bare": bare_batch, "product": batch})
    return [
        Figure("a bare INSERT, one a transaction", 1 / rates["bare"], "per s"),
        Figure("enqueue on a psycopg connection, of that", rates["bare"] / rates["psycopg"], "×", bound=0.8, is_floor=True),
        Figure("… through a SQLAlchemy Connection", rates["bare"] / rates["core"], "×", bound=0.5, is_floor=True),
        Figure("… through an ORM Session", rates["bare"] / rates["session"], "×", bound=0.25, is_floor=True),
        Figure("enqueue_many of 100 new, by a bare batch", fresh["product"] / fresh["bare"], "×", bound=1.3),
        Figure("the same 100 again, by a bare batch", again["product"] / again["bare"], "×", bound=1.5),
    ]


def _medians(puts: dict[str, Callable[[int], None]]) -> dict[str, float]:
    """Return the seconds of one call of each, by median over rounds that take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in puts}
    for _ in range(_ROUNDS):
        for name, put in puts.items():
            start = time.perf_counter()
            for n in range(_JOBS):
                put(n)
            seconds[name].append((time.perf_counter() - start) / _JOBS)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _batches(puts: dict[str, Callable[[str], None]]) -> tuple[dict[str, float], dict[str, float]]:
    fresh: dict[str, list[float]] = {name: [] for name in puts}
    again: dict[str, list[float]] = {name: [] for name in puts}
    for number in range(_BATCHES):
        for name, put in puts.items():
            for seconds in (fresh, again):
                start = time.perf_counter()
                put(f"batch {number}")
                seconds[name].append(time.perf_counter() - start)
    return (
        {name: statistics.median(values) for name, values in fresh.items()},
        {name: statistics.median(values) for name, values in again.items()},
    )
