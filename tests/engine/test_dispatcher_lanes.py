"""The leader's lanes in a real process: one that is stuck is seen, and none delays the ticks."""

import re
from collections.abc import Iterator

import httpx
import psycopg
import pytest

from tests.engine.test_dispatcher_process import START_SECONDS, dispatches, start, wait_for_dispatches
from tests.support.jobs import open_connection
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until

_RETENTION_WAITS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'sweephand dispatcher retention' AND wait_event_type = 'Lock'
"""


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(database_url) as connection:
        connection.execute("CREATE TABLE product (id int)")
        yield connection


def test_a_stuck_lane_is_seen_in_readyz_while_the_leader_ticks_on(commands: Commands, connection: psycopg.Connection) -> None:
    dispatcher = start(commands, "secondly")
    dispatcher.wait_for_log("term_began", deadline_seconds=START_SECONDS)
    wait_for_dispatches(connection, term=1)
    connection.execute(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no rescue today'; END $$;
        INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, attempt, timeout_seconds, claimed_at, claim_token,
            worker_id)
        VALUES ('mend', 'default', 'running', '{"product_id": 9}', 25, 1, 600, now() - interval '1 hour', gen_random_uuid(),
            99);
        CREATE TRIGGER refuse BEFORE UPDATE ON sweephand.job FOR EACH ROW EXECUTE FUNCTION refuse();
        """
    )

    reason = until(lambda: probe(dispatcher, "readyz").get("reason"), message="it is not ready")
    before = dispatches(connection, term=1)

    assert re.fullmatch(r"the rescue lane has failed \d times in a row: no rescue today", str(reason))
    wait_for_dispatches(connection, term=1, count=before + 2)
    assert probe(dispatcher, "livez") == {"status": "ok"}
    assert "lane_failed" in dispatcher.log
    connection.execute("DROP TRIGGER refuse ON sweephand.job")
    until(lambda: probe(dispatcher, "readyz") == {"status": "ok"}, message="it is ready again")


def test_ticks_go_on_while_retention_waits(commands: Commands, connection: psycopg.Connection, database_url: str) -> None:
    connection.execute(
        """
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql
            AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(20261130); RETURN OLD; END $$;
        CREATE TRIGGER wait BEFORE DELETE ON sweephand.job FOR EACH ROW EXECUTE FUNCTION wait();
        INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, scheduled_at, finished_at)
        SELECT 'mend', 'default', 'completed', '{}', 25, 600, now(), now() - interval '2 days'
        FROM generate_series(1, 10000) AS n;
        """
    )
    with open_connection(database_url) as holder, holder.transaction():
        holder.execute("SELECT pg_advisory_xact_lock(20261130)")
        start(commands, "secondly").wait_for_log("term_began", deadline_seconds=START_SECONDS)
        until(lambda: is_retention_waiting(connection), message="retention waits")

        wait_for_dispatches(connection, term=1, count=5)

        assert is_retention_waiting(connection)
        assert completed(connection) == 10_000
    until(lambda: completed(connection) == 0, message="retention has done its round")


def test_retention_and_rescue_go_on_at_once_while_there_is_more(commands: Commands, connection: psycopg.Connection) -> None:
    connection.execute(
        """
        INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, timeout_seconds, scheduled_at, finished_at)
        SELECT 'mend', 'default', 'completed', '{}', 25, 600, now(), now() - interval '2 days' FROM generate_series(1, 100001);
        INSERT INTO sweephand.job (kind, queue, state, args, max_attempts, attempt, timeout_seconds, claimed_at, claim_token,
            worker_id)
        SELECT 'mend', 'default', 'running', '{}', 25, 1, 600, now() - interval '1 hour', gen_random_uuid(), 99
        FROM generate_series(1, 5001);
        """
    )

    start(commands, "secondly").wait_for_log("term_began", deadline_seconds=START_SECONDS)

    # A round of retention deletes 100,000 jobs, one of rescue mends 500; waiting in between would take a minute or so each.
    until(lambda: in_state("running", connection) == 0, deadline_seconds=40, message="all lost jobs are rescued")
    until(lambda: completed(connection) == 0, deadline_seconds=45, message="all old jobs are deleted")


def is_retention_waiting(connection: psycopg.Connection) -> bool:
    return connection.execute(_RETENTION_WAITS).fetchone() == (1,)


def completed(connection: psycopg.Connection) -> int:
    return in_state("completed", connection)


def in_state(state: str, connection: psycopg.Connection) -> int:
    found = connection.execute("SELECT count(*) FROM sweephand.job WHERE state = %s", (state,)).fetchone()
    assert found is not None
    return int(found[0])


def probe(dispatcher: RunningCommand, name: str) -> dict[str, str]:
    port = dispatcher.wait_for_log("metrics_port=").partition("metrics_port=")[2].split()[0]
    answer: dict[str, str] = httpx.get(f"http://127.0.0.1:{port}/{name}", timeout=10).json()
    return answer
