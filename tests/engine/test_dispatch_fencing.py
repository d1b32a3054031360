"""Invariants 3 and 4: one dispatch for a planned time, and none of an old term beside or after a new one."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest

from sweephand import ConflictError, FencedError
from sweephand.postgres.dispatch import DispatchReport
from tests.engine.apps import SCAN_LOCK, hourly, secondly
from tests.engine.dispatching import dispatching
from tests.engine.message_gate import MessageGate
from tests.engine.ticking import Ticker, begin_term, leading, stored_ticks
from tests.support.jobs import open_connection
from tests.support.waiting import until, until_async

SWEEP = "broken_products"


@pytest.fixture
def products(connection: psycopg.Connection) -> psycopg.Connection:
    connection.execute("DELETE FROM sweephand.tick")
    connection.execute("DELETE FROM sweephand.sweep")
    connection.execute("INSERT INTO product SELECT generate_series(1, 100)")
    return connection


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=4) as pool:
        yield pool


def begin_another_term(database_url: str) -> int:
    async def gain() -> int:
        connection, term = await begin_term(database_url, hourly())
        await connection.close()
        return term.number

    return asyncio.run(gain())


def raise_term(connection: psycopg.Connection) -> None:
    connection.execute("UPDATE sweephand.leader SET term = term + 1, holder = 'another' WHERE name = 'engine-secondly'")


def is_waiting(connection: psycopg.Connection, event: str) -> bool:
    found = connection.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = %s", [event]
    )
    return found.fetchone() == (1,)


def test_of_two_dispatches_of_one_planned_time_one_is_done(
    products: psycopg.Connection, module_database_url: str, pool: ThreadPoolExecutor
) -> None:
    barrier = Barrier(2)

    def dispatch_once(first: Ticker) -> DispatchReport | ConflictError:
        # The same term twice, as after a COMMIT whose answer was lost.
        with leading(module_database_url, hourly(), term=first.term) as twin:
            expected = twin.next_tick_at(SWEEP)
            barrier.wait(10)
            try:
                return twin.tick(SWEEP, expected_tick_at=expected)
            except ConflictError as error:
                return error

    with leading(module_database_url, hourly()) as first:
        outcomes = [future.result(20) for future in [pool.submit(dispatch_once, first) for _ in range(2)]]

    reports = [outcome for outcome in outcomes if isinstance(outcome, DispatchReport)]
    assert [report.enqueued for report in reports] == [100]
    assert [tick.enqueued for tick in stored_ticks(products)] == [100]
    assert products.execute("SELECT count(*) FROM sweephand.job").fetchone() == (100,)


def test_a_replay_of_a_dispatch_that_was_committed_adds_nothing(products: psycopg.Connection, module_database_url: str) -> None:
    with leading(module_database_url, hourly()) as ticker:
        planned_at = ticker.next_tick_at(SWEEP)
        ticker.tick(SWEEP)
        products.execute("DELETE FROM sweephand.job")

        with pytest.raises(ConflictError, match="is no longer at"):
            ticker.tick(SWEEP, expected_tick_at=planned_at)
        # Even with the sweep's row set back, the ledger's unique index refuses the second dispatch.
        products.execute("UPDATE sweephand.sweep SET next_tick_at = %s", [planned_at])
        with pytest.raises(ConflictError, match="has been dispatched already"):
            ticker.tick(SWEEP)

    assert products.execute("SELECT count(*) FROM sweephand.job").fetchone() == (0,)
    assert len(stored_ticks(products)) == 1


def test_a_new_term_waits_for_a_dispatch_that_is_under_way(
    products: psycopg.Connection, module_database_url: str, pool: ThreadPoolExecutor
) -> None:
    products.execute("SELECT pg_advisory_lock(%s)", [SCAN_LOCK])
    with leading(module_database_url, hourly()) as old:
        dispatch: Future[DispatchReport] = pool.submit(old.tick, SWEEP)
        until(lambda: is_waiting(products, "advisory"), message="the dispatch scans")
        new_term: Future[int] = pool.submit(begin_another_term, module_database_url)
        until(lambda: is_waiting(products, "transactionid"), message="the new term waits")

        products.execute("SELECT pg_advisory_unlock(%s)", [SCAN_LOCK])

        assert dispatch.result(10).enqueued == 100
        assert new_term.result(10) == old.term.number + 1
        with pytest.raises(FencedError, match=f"term {old.term.number} of engine-hourly is over"):
            old.tick(SWEEP)

    assert [tick.term for tick in stored_ticks(products)] == [old.term.number]


def test_an_old_term_writes_nothing(products: psycopg.Connection, module_database_url: str) -> None:
    with leading(module_database_url, hourly()) as old:
        planned_at = old.next_tick_at(SWEEP)
        begin_another_term(module_database_url)

        with pytest.raises(FencedError):
            old.tick(SWEEP)

        assert old.next_tick_at(SWEEP) == planned_at
    assert stored_ticks(products) == []
    assert products.execute("SELECT count(*) FROM sweephand.job").fetchone() == (0,)


async def test_a_fenced_leader_puts_its_try_on_record_and_leads_again_in_a_later_term(
    products: psycopg.Connection, module_database_url: str
) -> None:
    async def terms(outcome: str) -> list[int]:
        return [tick.term for tick in stored_ticks(products) if tick.outcome == outcome]

    own = 0
    async with dispatching(module_database_url, secondly()):
        for _ in range(5):  # the rescue lane may be the one that finds the later term; then a later try shows it
            await until_async(lambda: terms("ok"), message="it ticks")
            own = (await terms("ok"))[-1]
            # In a thread: it waits for a dispatch that is under way, which this event loop carries out.
            await asyncio.to_thread(raise_term, products)

            async def leads_again(term: int = own) -> bool:
                return (await terms("ok"))[-1] == term + 2

            await until_async(leads_again, message="it ticks again, in a term of its own")
            if await terms("fenced"):
                break

    assert await terms("fenced") == [own]
    assert own + 1 not in await terms("ok")


def test_a_hundred_rows_are_scanned_and_enqueued_by_one_statement(products: psycopg.Connection, module_database_url: str) -> None:
    gate = MessageGate(module_database_url)
    try:
        with leading(gate.url, hourly()) as ticker:
            planned_at = ticker.next_tick_at(SWEEP)
            gate.statements()

            report = ticker.tick(SWEEP, expected_tick_at=planned_at)

            assert report.enqueued == 100
            assert gate.statements() == 4  # BEGIN, the fence, the dispatch, COMMIT
            assert products.execute("SELECT count(*) FROM sweephand.job").fetchone() == (100,)
    finally:
        gate.close()


@pytest.mark.parametrize("is_analysed", [False, True])
def test_among_fifty_thousand_jobs_duplicates_are_found_by_the_index(database_url: str, *, is_analysed: bool) -> None:
    with open_connection(database_url) as connection:
        connection.execute("""
            ALTER TABLE sweephand.job SET (autovacuum_enabled = off);
            CREATE TABLE product (id int);
            INSERT INTO product SELECT generate_series(49901, 50100);
            INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, unique_key, finished_at)
            SELECT 'mend', 'default', CASE WHEN n % 2 = 0 THEN 'available' ELSE 'completed' END, args, 25, 600,
                sweephand.unique_key('mend', args, NULL), CASE WHEN n % 2 = 1 THEN now() END
            FROM generate_series(1, 50000) AS n, jsonb_build_object('product_id', n) AS args""")
        if is_analysed:
            connection.execute("ANALYZE")
        with leading(database_url, hourly()) as ticker:
            before = job_reads(connection)

            report = ticker.tick(SWEEP)

            ticker.execute("SELECT pg_stat_force_next_flush()")
            after = until(lambda: found if (found := job_reads(connection)) != before else None, message="PostgreSQL has counted")
    assert after is not None
    assert (report.enqueued, report.skipped_duplicates) == (100, 50)
    assert after[0] == before[0], "it read the whole table"
    assert after[1] >= before[1] + 150


def job_reads(connection: psycopg.Connection) -> tuple[int, int]:
    """Return how many rows of jobs were read in whole-table scans, and how often the index of unfinished keys was asked."""
    row = connection.execute("""
        SELECT seq_tup_read, asked FROM pg_stat_user_tables AS job
        JOIN (SELECT idx_scan AS asked FROM pg_stat_user_indexes WHERE indexrelname = 'job_unfinished_key') AS key ON true
        WHERE job.relname = 'job' AND job.schemaname = 'sweephand'""").fetchone()
    assert row is not None
    return (int(row[0]), int(row[1]))
