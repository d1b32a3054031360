"""Invariant 2: wherever a dispatcher is killed or cut off, the ledger and the jobs agree, and the tick is done once."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from tests.engine.apps import SCAN_LOCK, hourly
from tests.engine.dispatching import change, dispatching, request_run
from tests.engine.message_gate import MessageGate
from tests.support.jobs import open_connection
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until, until_async

TICKS = "sweephand dispatcher ticks"
FENCE, STATEMENT, COMMIT = "FOR SHARE", "WITH moved AS", "COMMIT"
ENVIRONMENT = {
    "SWEEPHAND_ELECTOR": "always",
    "SWEEPHAND_PREPARED_STATEMENTS": "false",
    "SWEEPHAND_POLL_INTERVAL_SECONDS": "0.05",
    "SWEEPHAND_ENVIRONMENT": "development",
}


@pytest.fixture
def gate(database_url: str) -> Iterator[MessageGate]:
    gate = MessageGate(database_url)
    yield gate
    gate.close()


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as connection:
        connection.execute("CREATE TABLE product (id int)")
        connection.execute("INSERT INTO product SELECT generate_series(1, 3)")
        yield connection


def start(commands: Commands, gate: MessageGate) -> RunningCommand:
    return commands.start("dispatcher", app="tests.engine.apps:hourly", env=ENVIRONMENT | {"DATABASE_URL": gate.url})


def ticks(connection: psycopg.Connection) -> list[tuple[object, ...]]:
    return connection.execute("SELECT outcome, enqueued, skipped_duplicates FROM sweephand.tick ORDER BY id").fetchall()


def check_that_ledger_and_jobs_agree(connection: psycopg.Connection) -> None:
    """Compare each tick's counts with the jobs that name it, and see that no row has two jobs."""
    assert (
        connection.execute("""
        SELECT tick.id, tick.enqueued, count(job.id) FROM sweephand.tick FULL JOIN sweephand.job ON job.tick_id = tick.id
        GROUP BY tick.id HAVING tick.enqueued IS DISTINCT FROM count(job.id)""").fetchall()
        == []
    )
    assert connection.execute("SELECT args FROM sweephand.job GROUP BY args HAVING count(*) > 1").fetchall() == []


async def finish_with_another(database_url: str, connection: psycopg.Connection) -> None:
    """Let a second dispatcher take over, and wait until it has done all that was left, and one run more."""
    async with dispatching(database_url, hourly()):
        await until_async(lambda: term_is(connection, 2), message="the second leads")
        await until_async(lambda: is_done(connection), message="the tick is done")
        await request_run(connection)
        await until_async(lambda: has_manual_tick(connection), message="the second came around")


async def term_is(connection: psycopg.Connection, term: int) -> bool:
    return connection.execute("SELECT registered_term FROM sweephand.sweep").fetchone() == (term,)


async def has_manual_tick(connection: psycopg.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sweephand.tick WHERE reason = 'manual'").fetchone() == (1,)


@pytest.mark.parametrize(
    ("text", "is_answer"),
    [
        pytest.param(FENCE, False, id="before the fence"),
        pytest.param(FENCE, True, id="after the fence"),
        pytest.param(COMMIT, False, id="after the statement before COMMIT"),
        pytest.param(COMMIT, True, id="after COMMIT before its answer"),
    ],
)
async def test_sigkill_at_a_message_leaves_a_tick_with_its_jobs_or_none(
    *, text: str, is_answer: bool, gate: MessageGate, commands: Commands, connection: psycopg.Connection, database_url: str
) -> None:
    hold = gate.hold(text, application=TICKS, is_answer=is_answer)
    process = start(commands, gate)
    hold.wait()
    is_committed = ticks(connection) == [("ok", 3, 0)]

    process.kill()
    process.wait()
    gate.close()

    check_that_ledger_and_jobs_agree(connection)
    assert is_committed is (text == COMMIT and is_answer)
    await finish_with_another(database_url, connection)
    check_that_ledger_and_jobs_agree(connection)
    assert ticks(connection) == [("ok", 3, 0), ("ok", 0, 3)]


async def test_sigkill_during_the_scan_leaves_nothing_and_the_next_leader_waits_for_the_scan_to_end(
    gate: MessageGate, commands: Commands, connection: psycopg.Connection, database_url: str
) -> None:
    connection.execute("SELECT pg_advisory_lock(%s)", [SCAN_LOCK])
    process = start(commands, gate)
    until(lambda: is_scanning(connection), message="the dispatch scans")

    process.kill()
    process.wait()
    gate.close()

    assert ticks(connection) == []
    async with dispatching(database_url, hourly()):
        await until_async(lambda: is_waiting_to_gain(connection), message="the next leader waits")
        connection.execute("SELECT pg_advisory_unlock(%s)", [SCAN_LOCK])
        await until_async(lambda: is_done(connection), message="the next leader has ticked")
    check_that_ledger_and_jobs_agree(connection)
    assert ticks(connection) == [("ok", 3, 0)]


async def test_sigkill_after_the_answer_leaves_the_tick_as_it_was(
    gate: MessageGate, commands: Commands, connection: psycopg.Connection, database_url: str
) -> None:
    process = start(commands, gate)
    process.wait_for_log("dispatched", deadline_seconds=30)

    process.kill()
    process.wait()

    await finish_with_another(database_url, connection)
    check_that_ledger_and_jobs_agree(connection)
    assert ticks(connection) == [("ok", 3, 0), ("ok", 0, 3)]


@pytest.mark.parametrize("is_answer", [False, True], ids=["a COMMIT that never arrives", "a COMMIT whose answer is lost"])
async def test_a_connection_that_is_cut_at_commit_is_made_up_for_by_the_same_leader(
    *, is_answer: bool, gate: MessageGate, connection: psycopg.Connection
) -> None:
    hold = gate.hold(COMMIT, application=TICKS, is_answer=is_answer)

    async with dispatching(gate.url, hourly()):
        await asyncio.to_thread(hold.wait)
        gate.cut()
        hold.release()
        await until_async(lambda: is_done(connection), message="the tick is done")
        await request_run(connection)
        await until_async(lambda: has_manual_tick(connection), message="it came around")

    check_that_ledger_and_jobs_agree(connection)
    assert ticks(connection) == [("ok", 3, 0), ("ok", 0, 3)]


async def test_a_commit_that_fails_is_an_error_on_record_and_leaves_no_job(
    connection: psycopg.Connection, database_url: str
) -> None:
    # A deferred trigger is PostgreSQL's own way to fail at COMMIT, after every statement went well.
    connection.execute("""
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not today''; END';
        CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON sweephand.job DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION refuse()""")

    async with dispatching(database_url, hourly()):
        await until_async(lambda: is_done(connection), message="the tick is on record")
        failed = connection.execute("SELECT outcome, enqueued, error FROM sweephand.tick").fetchall()
        jobs = connection.execute("SELECT count(*) FROM sweephand.job").fetchone()
        await change(connection, "DROP FUNCTION refuse CASCADE")
        await request_run(connection)
        await until_async(lambda: has_manual_tick(connection), message="the next tick")

    assert failed == [("error", 0, "not today")]
    assert jobs == (0,)
    check_that_ledger_and_jobs_agree(connection)
    assert ticks(connection) == [("error", 0, 0), ("ok", 3, 0)]


async def is_done(connection: psycopg.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sweephand.tick").fetchone() == (1,)


async def is_waiting_to_gain(connection: psycopg.Connection) -> bool:
    return connection.execute("""
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'sweephand dispatcher term'
            AND wait_event_type = 'Lock'""").fetchone() == (1,)


def is_scanning(connection: psycopg.Connection) -> bool:
    return connection.execute("""
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'sweephand dispatcher ticks'
            AND wait_event = 'advisory'""").fetchone() == (1,)
