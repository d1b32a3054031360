"""Read what the database holds: ticks, terms, jobs, products. And say whether a ledger is exact."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import psycopg
from psycopg.rows import class_row

from storefront.adapters.postgres.stuck_publications import GRACE
from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import connect
from tests.support.waiting import until

PATIENCE_SECONDS = 120
SWEEP = "stuck_publications"
"""The sweep that the cases watch. The shop's other one, of unconfirmed orders, ticks beside it and finds nothing."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Be a row of the ledger: one planned tick, or `covers` of them in a row from planned_at on."""

    id: int
    planned_at: datetime
    reason: str
    outcome: str
    cause: str | None
    covers: int
    made_up_by: int | None
    started_at: datetime | None
    ended_at: datetime | None
    enqueued: int
    skipped_duplicates: int
    term: int
    dispatcher: str

    @property
    def is_dispatch(self) -> bool:
        """Whether its scan was run and committed."""
        return self.outcome in {"ok", "empty"}


@dataclass(frozen=True, slots=True)
class Term:
    """Be who led last, and since when."""

    term: int
    holder: str
    since: datetime


class Ledger:
    """Be the shop's database, for reading. Each question waits for a database that is away."""

    def __init__(self, database_url: Callable[[], str], *, interval_seconds: float) -> None:
        """Take where the database is found now, and the interval of the sweep."""
        self._database_url = database_url
        self._interval = timedelta(seconds=interval_seconds)

    def now(self) -> datetime:
        """Return the database's time."""
        with self.connection() as connection:
            row = connection.execute("SELECT now()").fetchone()
        assert row is not None
        moment: datetime = row[0]
        return moment

    def ticks(self, *, since: datetime) -> list[Tick]:
        """Return the sweep's ticks planned since a moment, in the order of their planned times."""
        with self.connection() as connection, connection.cursor(row_factory=class_row(Tick)) as cursor:
            return cursor.execute(
                """
                SELECT id, planned_at, reason, outcome, cause, covers, made_up_by, started_at, ended_at, enqueued,
                    skipped_duplicates, term, dispatcher
                FROM sweephand.tick WHERE planned_at >= %s AND sweep = %s ORDER BY planned_at, id
                """,
                (since, SWEEP),
            ).fetchall()

    def term(self) -> Term:
        """Return the present term."""
        with self.connection() as connection, connection.cursor(row_factory=class_row(Term)) as cursor:
            found = cursor.execute("SELECT term, holder, since FROM sweephand.leader").fetchone()
        return found or Term(0, "", datetime.fromtimestamp(0).astimezone())

    def wait_for_term(self, after: Term, *, deadline_seconds: float = PATIENCE_SECONDS) -> Term:
        """Return the present term once it is later than `after`."""

        def later() -> Term | None:
            term = self.term()
            return term if term.term > after.term else None

        found = until(later, deadline_seconds=deadline_seconds, every_seconds=0.25, message=f"a term after {after.term}")
        assert found is not None
        return found

    def wait_for_dispatch(self, *, since: datetime, deadline_seconds: float = PATIENCE_SECONDS) -> Tick:
        """Return the first dispatch that started after a moment, waiting for it."""

        def first() -> Tick | None:
            started = [tick for tick in self.ticks(since=since - self._interval) if tick.is_dispatch and tick.started_at]
            return next((tick for tick in started if tick.started_at is not None and tick.started_at >= since), None)

        found = until(first, deadline_seconds=deadline_seconds, every_seconds=0.25, message="a dispatch")
        assert found is not None
        return found

    def check_exact(self, *, since: datetime) -> list[Tick]:
        """Return the ticks since a moment; each planned time has exactly one row, and no old term ticked after a newer one."""
        ticks = [tick for tick in self.ticks(since=since) if tick.outcome != "fenced" and tick.reason != "manual"]
        assert overlaps(ticks) == []
        planned = Counter(planned_times(ticks, interval=self._interval))
        assert [moment for moment, rows in planned.items() if rows > 1] == []
        if planned:
            wanted = round((max(planned) - min(planned)) / self._interval) + 1
            assert len(planned) == wanted, f"{wanted - len(planned)} planned ticks have no row"
        return ticks

    def insert_stuck(self, count: int, *, in_seconds: float = 0) -> tuple[int, ...]:
        """Insert products that the sweep will find, as if their jobs were lost, in a while or at once; return their ids."""
        return tuple(
            self._numbers(
                """
                INSERT INTO storefront.product (name, description, price_cents, created_at)
                SELECT 'Stuck product', 'Its publication was lost', 100, now() - %s + make_interval(secs => %s)
                FROM generate_series(1, %s) RETURNING id
                """,
                GRACE,
                in_seconds,
                count,
            )
        )

    def published_at(self, product_ids: Sequence[int]) -> list[datetime]:
        """Return when the published ones of the products were published."""
        with self.connection() as connection:
            rows = connection.execute(
                "SELECT published_at FROM storefront.product WHERE id = ANY (%s) AND published_at IS NOT NULL",
                (list(product_ids),),
            ).fetchall()
        return [moment for (moment,) in rows]

    def unpublished(self, product_ids: Sequence[int]) -> list[int]:
        """Return those of the products that are not published."""
        return self._numbers("SELECT id FROM storefront.product WHERE id = ANY (%s) AND published_at IS NULL", list(product_ids))

    def wait_until_published(self, product_ids: Sequence[int], *, deadline_seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until all of the products are published."""
        until(
            lambda: not self.unpublished(product_ids),
            deadline_seconds=deadline_seconds,
            every_seconds=0.5,
            message=f"{len(product_ids)} products are published",
        )

    def executions(self, product_ids: Sequence[int]) -> Counter[int]:
        """Return how often each product's publication was carried out: attempts that completed."""
        found = self._numbers(
            """
            SELECT (job.args ->> 'product_id')::bigint FROM sweephand.job JOIN sweephand.job_attempt ON job_id = job.id
            WHERE job.kind = 'publish_product' AND outcome = 'completed' AND (job.args ->> 'product_id')::bigint = ANY (%s)
            """,
            list(product_ids),
        )
        return Counter(found)

    def attempts(self, product_ids: Sequence[int]) -> Counter[str]:
        """Return how many attempts of the products' jobs ended in each outcome."""
        with self.connection() as connection:
            rows = connection.execute(
                """
                SELECT outcome, count(*) FROM sweephand.job JOIN sweephand.job_attempt ON job_id = job.id
                WHERE job.kind = 'publish_product' AND (job.args ->> 'product_id')::bigint = ANY (%s) GROUP BY outcome
                """,
                (list(product_ids),),
            ).fetchall()
        return Counter({str(outcome): int(count) for outcome, count in rows})

    def jobs(self, state: str, *, kind: str = "publish_product") -> int:
        """Return how many jobs of a kind are in a state."""
        return self._numbers("SELECT count(*) FROM sweephand.job WHERE state = %s AND kind = %s", state, kind)[0]

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Let the server refuse every write for the block, as a primary does that became a replica."""
        self._set_read_only("on")
        try:
            yield
        finally:
            self._set_read_only("off")

    def _set_read_only(self, value: str) -> None:
        with self.connection() as connection:
            connection.execute(b"SET default_transaction_read_only = off")
            connection.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}".encode())
            connection.execute(b"SELECT pg_reload_conf()")

    def connection(self) -> AbstractContextManager[psycopg.Connection]:
        """Return an autocommit connection, waiting for a database that is away."""

        def try_to_connect() -> psycopg.Connection | None:
            try:
                return connect(self._database_url(), application_name="e2e")
            except DatabaseError:
                return None

        found = until(try_to_connect, deadline_seconds=PATIENCE_SECONDS, every_seconds=0.5, message="PostgreSQL answers")
        assert found is not None
        return found

    def _numbers(self, query: str, *values: object) -> list[int]:
        with self.connection() as connection:
            return [int(row[0]) for row in connection.execute(query.encode(), values).fetchall()]


def planned_times(ticks: Iterable[Tick], *, interval: timedelta) -> list[datetime]:
    """Return every planned time that the rows stand for."""
    return [tick.planned_at + number * interval for tick in ticks for number in range(tick.covers)]


def overlaps(ticks: Iterable[Tick]) -> list[tuple[int, int]]:
    """Return pairs of ids: a tick of an older term that started after one of a newer term, and that one."""
    starts = sorted((tick.started_at, tick.term, tick.id) for tick in ticks if tick.is_dispatch and tick.started_at)
    return [(late_id, newer_id) for (_, newer, newer_id), (_, term, late_id) in pairwise(starts) if term < newer]


def missed(ticks: Iterable[Tick]) -> int:
    """Return how many planned ticks did not run at their time because nobody led."""
    return sum(tick.covers for tick in ticks if tick.cause == "no_leader")
