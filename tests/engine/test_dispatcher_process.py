"""Dispatchers as real processes: hand-over, take-over and a database that restarts leave no second without its row."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sweephand.postgres.embedded import EmbeddedPostgres
from sweephand.postgres.migrate import migrate
from tests.support.jobs import open_connection
from tests.support.network import DatabaseGate
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until

ENVIRONMENT = {
    "SWEEPHAND_ELECTOR": "postgres",
    "SWEEPHAND_LEASE_DURATION_SECONDS": "3",
    "SWEEPHAND_RENEW_DEADLINE_SECONDS": "2",
    "SWEEPHAND_RETRY_PERIOD_SECONDS": "0.2",
    "SWEEPHAND_ENVIRONMENT": "development",
}
START_SECONDS = 40


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as connection:
        connection.execute("CREATE TABLE product (id int)")
        connection.execute("INSERT INTO product SELECT generate_series(1, 3)")
        yield connection


def start(commands: Commands, app: str) -> RunningCommand:
    return commands.start("dispatcher", app=f"tests.engine.apps:{app}", env=ENVIRONMENT)


def start_two(commands: Commands) -> tuple[RunningCommand, RunningCommand]:
    """Start two dispatchers and return the one that leads first."""
    both = [start(commands, "secondly") for _ in range(2)]
    for one in both:
        one.wait_for_log("dispatcher_started", deadline_seconds=START_SECONDS)
    leader = until(lambda: next((one for one in both if "term_began" in one.log), None), message="one leads")
    assert leader is not None
    follower = both[1] if leader is both[0] else both[0]
    return leader, follower


def dispatches(connection: psycopg.Connection, *, term: int) -> int:
    row = connection.execute("SELECT count(*) FROM sweephand.tick WHERE term >= %s AND outcome IN ('ok', 'empty')", [term])
    found = row.fetchone()
    assert found is not None
    return int(found[0])


def wait_for_dispatches(connection: psycopg.Connection, *, term: int, count: int = 2) -> None:
    until(lambda: dispatches(connection, term=term) >= count, deadline_seconds=30, message=f"term {term} has dispatched")


def check_that_every_second_has_one_row(connection: psycopg.Connection) -> None:
    gaps = connection.execute("""
        WITH covered AS (
            SELECT planned_at + make_interval(secs => n) AS at FROM sweephand.tick, generate_series(0, covers - 1) AS n
            WHERE outcome <> 'fenced' AND reason <> 'manual'
        )
        SELECT count(*) - count(DISTINCT at),
            extract(epoch FROM max(at) - min(at)) + 1 - count(DISTINCT at) FROM covered""").fetchone()
    assert gaps == (0, 0), "duplicates and gaps of the grid"


def check_that_each_product_has_one_job(connection: psycopg.Connection) -> None:
    assert connection.execute("SELECT args ->> 'product_id' FROM sweephand.job ORDER BY 1").fetchall() == [("1",), ("2",), ("3",)]


def test_sigterm_hands_over_to_the_other_within_seconds(commands: Commands, connection: psycopg.Connection) -> None:
    leader, follower = start_two(commands)
    wait_for_dispatches(connection, term=1)

    leader.kill(signal.SIGTERM)

    follower.wait_for_log("term_began")
    wait_for_dispatches(connection, term=2)
    assert leader.wait() == 0
    assert "lease_released" in leader.log
    check_that_every_second_has_one_row(connection)
    check_that_each_product_has_one_job(connection)


def test_sigkill_is_taken_over_when_the_lease_ends(commands: Commands, connection: psycopg.Connection) -> None:
    leader, _ = start_two(commands)
    wait_for_dispatches(connection, term=1)

    leader.kill()

    wait_for_dispatches(connection, term=2)
    check_that_every_second_has_one_row(connection)
    check_that_each_product_has_one_job(connection)
    causes = connection.execute("SELECT DISTINCT cause FROM sweephand.tick WHERE cause IS NOT NULL AND term = 2").fetchall()
    assert ("no_leader",) in causes


def test_sigterm_ends_a_leader_whose_database_never_answers(commands: Commands, database_url: str) -> None:
    gate = DatabaseGate(database_url)
    try:
        usual = {"SWEEPHAND_LEASE_DURATION_SECONDS": "15", "SWEEPHAND_RENEW_DEADLINE_SECONDS": "10"}
        frozen = {"DATABASE_URL": f"{gate.url}?gssencmode=disable"}
        leader = commands.start("dispatcher", app="tests.engine.apps:secondly", env=ENVIRONMENT | usual | frozen)
        leader.wait_for_log("term_began", deadline_seconds=START_SECONDS)
        gate.freeze()

        leader.kill(signal.SIGTERM)

        assert leader.wait(deadline_seconds=25) == 0
        assert "leader_work_stuck" not in leader.log
    finally:
        gate.close()


def test_five_rolls_in_one_period_make_one_tick_at_the_start(commands: Commands, connection: psycopg.Connection) -> None:
    dispatchers = [start(commands, "hourly") for _ in range(5)]
    for one in dispatchers:
        one.wait_for_log("dispatcher_started", deadline_seconds=START_SECONDS)

    for _ in range(5):
        leader = until(lambda: next((one for one in dispatchers if has_begun(one)), None), message="another leads")
        assert leader is not None
        leader.kill(signal.SIGTERM)
        assert leader.wait() == 0
        dispatchers.remove(leader)

    assert connection.execute("SELECT reason, outcome, enqueued FROM sweephand.tick").fetchall() == [("run_on_start", "ok", 3)]
    assert connection.execute("SELECT term FROM sweephand.leader").fetchone() == (5,)


def has_begun(dispatcher: RunningCommand) -> bool:
    """Tell whether a leader has ticked, or has refused to for this period."""
    return "dispatched" in dispatcher.log or "run_on_start_refused" in dispatcher.log


@pytest.mark.parametrize("is_crash", [False, True], ids=["restart", "crash"])
def test_a_database_that_restarts_is_outlived_and_its_time_is_on_record(
    own_postgres: EmbeddedPostgres, tmp_path: Path, *, is_crash: bool
) -> None:
    database_url = own_postgres.start()
    migrate(database_url)
    with open_connection(database_url) as connection:
        connection.execute("CREATE TABLE product (id int)")
        connection.execute("INSERT INTO product SELECT generate_series(1, 3)")
    commands = Commands(tmp_path, database_url=database_url)
    try:
        dispatcher = start(commands, "secondly")
        dispatcher.wait_for_log("dispatched", deadline_seconds=START_SECONDS)

        own_postgres.stop(is_crash=is_crash)
        dispatcher.wait_for_log("database_lost")
        own_postgres.start()

        with open_connection(database_url) as connection:
            before = dispatches(connection, term=1)
            wait_for_dispatches(connection, term=1, count=before + 2)
            check_that_every_second_has_one_row(connection)
            check_that_each_product_has_one_job(connection)
        assert dispatcher.is_running()
    finally:
        commands.destroy_all()
