from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
import pytest

from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import connect
from tests.support.network import DatabaseGate
from tests.support.waiting import until


@pytest.fixture
def connection(database_gate: DatabaseGate) -> Iterator[psycopg.Connection]:
    with connect(database_gate.url, application_name="test") as opened:
        yield opened


@pytest.fixture
def in_background() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(max_workers=1) as executor:
        yield executor


def _answer(connection: psycopg.Connection) -> object:
    row = connection.execute("SELECT 7").fetchone()
    return None if row is None else row[0]


def test_an_open_gate_lets_everything_through(connection: psycopg.Connection, database_gate: DatabaseGate) -> None:
    row = connection.execute("SELECT length(%s)", ["x" * 1_000_000]).fetchone()

    assert row == (1_000_000,)
    assert database_gate.connections == 1


def test_a_frozen_gate_keeps_the_connection_and_delivers_once_it_is_open(
    connection: psycopg.Connection, database_gate: DatabaseGate, in_background: ThreadPoolExecutor
) -> None:
    database_gate.freeze()
    answer: Future[object] = in_background.submit(_answer, connection)
    with pytest.raises(TimeoutError):
        answer.result(timeout=0.2)

    database_gate.open()

    assert answer.result(timeout=5) == 7


def test_an_answer_can_be_lost_though_the_statement_was_done(
    connection: psycopg.Connection, database_gate: DatabaseGate, in_background: ThreadPoolExecutor, database_url: str
) -> None:
    connection.execute("CREATE TABLE done (number int)")
    database_gate.hold_answers()
    inserted = in_background.submit(connection.execute, "INSERT INTO done VALUES (1)")
    with connect(database_url, application_name="test") as direct:
        until(lambda: direct.execute("SELECT 1 FROM done").fetchone(), message="the row is committed")

    database_gate.cut()

    with pytest.raises(psycopg.OperationalError):
        inserted.result(timeout=5)


def test_a_gate_that_refuses_is_a_database_that_is_down(connection: psycopg.Connection, database_gate: DatabaseGate) -> None:
    database_gate.refuse()

    with pytest.raises(psycopg.OperationalError):
        _answer(connection)
    with pytest.raises(DatabaseError):
        connect(database_gate.url, application_name="test")

    database_gate.open()
    with connect(database_gate.url, application_name="test") as again:
        assert _answer(again) == 7
