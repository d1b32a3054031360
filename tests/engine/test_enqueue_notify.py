"""Workers are woken by the caller's commit, once for a queue, and never for what cannot start yet."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import psycopg
import pytest

from sweephand import App, enqueue
from tests.engine.callers import mend
from tests.support.jobs import open_connection

app = App("notify")


@app.job(queue="mail")
def send_mail(number: int) -> None:
    pass


@pytest.fixture
def listener(module_database_url: str) -> Iterator[psycopg.Connection]:
    with open_connection(module_database_url) as listener:
        for channel in ("sweephand.default", "sweephand.mail", "done"):
            listener.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
        yield listener


def heard(listener: psycopg.Connection, connection: psycopg.Connection) -> list[tuple[str, str]]:
    """Return what was notified until now, by channel and payload."""
    connection.execute("NOTIFY done")
    found: list[tuple[str, str]] = []
    for notification in listener.notifies(timeout=10):
        if notification.channel == "done":
            return found
        found.append((notification.channel, notification.payload))
    raise AssertionError(found)


def test_the_commit_wakes_the_workers_of_the_queue_once(connection: psycopg.Connection, listener: psycopg.Connection) -> None:
    with connection.transaction():
        for number in range(3):
            enqueue(connection, mend, product_id=number)
            enqueue(connection, send_mail, number=number)

    assert sorted(heard(listener, connection)) == [("sweephand.default", ""), ("sweephand.mail", "")]


def test_nothing_is_heard_before_the_commit(
    connection: psycopg.Connection, listener: psycopg.Connection, module_database_url: str
) -> None:
    with open_connection(module_database_url) as caller, caller.transaction():
        enqueue(caller, mend, product_id=7)

        before = heard(listener, connection)

    assert before == []
    assert heard(listener, connection) == [("sweephand.default", "")]


def roll_back(connection: psycopg.Connection) -> None:
    with connection.transaction(force_rollback=True):
        enqueue(connection, mend, product_id=7)


def roll_back_to_a_savepoint(connection: psycopg.Connection) -> None:
    with connection.transaction(), connection.transaction(force_rollback=True):
        enqueue(connection, mend, product_id=7)


def schedule(connection: psycopg.Connection) -> None:
    with connection.transaction():
        enqueue(connection, mend.after(timedelta(seconds=1)), product_id=7)


def switch_off(connection: psycopg.Connection) -> None:
    with connection.transaction():
        connection.execute("SET LOCAL sweephand.notify = off")
        enqueue(connection, mend, product_id=7)


@pytest.mark.parametrize("act", [roll_back, roll_back_to_a_savepoint, schedule, switch_off])
def test_nothing_is_heard_of_what_nobody_can_start(
    act: Callable[[psycopg.Connection], None], connection: psycopg.Connection, listener: psycopg.Connection
) -> None:
    act(connection)

    assert heard(listener, connection) == []


def test_a_duplicate_wakes_nobody(connection: psycopg.Connection, listener: psycopg.Connection) -> None:
    with connection.transaction():
        enqueue(connection, mend, product_id=7)
    heard(listener, connection)

    with connection.transaction():
        enqueue(connection, mend, product_id=7)

    assert heard(listener, connection) == []


def test_the_whole_database_can_be_muted(database_url: str) -> None:
    with open_connection(database_url) as admin:
        admin.execute("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET sweephand.notify = off', current_database()); END $$")
    with open_connection(database_url) as listener, open_connection(database_url) as caller:
        listener.execute('LISTEN "sweephand.default"')
        listener.execute("LISTEN done")
        with caller.transaction():
            enqueue(caller, mend, product_id=7)

        assert heard(listener, caller) == []
