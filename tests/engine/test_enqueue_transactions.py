"""Enqueue joins the caller's transaction, and never makes one of its own instead."""

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from sweephand import App, ArgumentsError, EnqueueOutcome, NoTransactionError, SettingsError, enqueue
from sweephand.postgres.connect import conninfo
from tests.engine.callers import DRIVERS, mend
from tests.support.jobs import open_connection

LORD_HOWE = datetime(2026, 4, 4, 15, 15, 30, 123456, tzinfo=UTC)  # in Lord Howe's half hour that comes twice


def job_count(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT count(*) FROM sweephand.job").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("driver", DRIVERS)
def test_without_an_open_transaction_it_refuses_and_adds_nothing(
    driver: str, connection: psycopg.Connection, module_database_url: str
) -> None:
    with DRIVERS[driver](module_database_url, None) as caller, pytest.raises(NoTransactionError, match=r"call it inside `.*with"):
        caller.enqueue(mend, 7)

    assert job_count(connection) == 0


@pytest.mark.parametrize("driver", [name for name in DRIVERS if not name.startswith("psycopg")])
def test_a_driver_that_commits_each_statement_is_refused_although_a_transaction_seems_open(
    driver: str, connection: psycopg.Connection, module_database_url: str
) -> None:
    with ExitStack() as stack:
        caller = stack.enter_context(DRIVERS[driver](module_database_url, "AUTOCOMMIT"))
        stack.enter_context(caller.transaction())

        with pytest.raises(NoTransactionError):
            caller.enqueue(mend, 7)

    assert job_count(connection) == 0


@pytest.mark.parametrize("autocommit", [True, False])
def test_a_psycopg_connection_before_its_first_statement_has_no_transaction(
    module_database_url: str, *, autocommit: bool
) -> None:
    target = conninfo(module_database_url, application_name="caller")

    with psycopg.connect(target, autocommit=autocommit) as idle, pytest.raises(NoTransactionError):
        enqueue(idle, mend, product_id=7)


def test_a_transaction_that_the_callers_first_statement_opened_is_joined(
    connection: psycopg.Connection, module_database_url: str
) -> None:
    with psycopg.connect(conninfo(module_database_url, application_name="caller")) as caller:
        caller.execute("INSERT INTO product VALUES (7)")
        enqueue(caller, mend, product_id=7)
        caller.rollback()
        caller.execute("INSERT INTO product VALUES (8)")
        enqueue(caller, mend, product_id=8)
        caller.commit()

    assert connection.execute("SELECT args FROM sweephand.job").fetchall() == [({"product_id": 8},)]


@pytest.mark.parametrize("cursor_factory", [psycopg.ClientCursor, psycopg.RawCursor])
def test_the_callers_kind_of_cursor_does_not_matter(
    cursor_factory: type[psycopg.Cursor[object]], connection: psycopg.Connection, module_database_url: str
) -> None:
    target = conninfo(module_database_url, application_name="caller")

    with psycopg.connect(target, cursor_factory=cursor_factory) as caller, caller.transaction():
        enqueue(caller, mend, product_id=7)

    assert job_count(connection) == 1


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_moment_is_kept_to_the_microsecond_in_any_session_time_zone(
    driver: str, connection: psycopg.Connection, module_database_url: str
) -> None:
    with DRIVERS[driver](module_database_url, None) as caller, caller.transaction():
        caller.execute("SET LOCAL TIME ZONE 'Australia/Lord_Howe'")
        caller.enqueue(mend.at(LORD_HOWE), 1)
        caller.enqueue(mend.at(datetime(2999, 1, 1, tzinfo=UTC)), 2)
        caller.enqueue(mend.after(timedelta(days=36_500)), 3)
        caller.enqueue(mend.after(timedelta(0)), 4)

    rows = connection.execute("""
        SELECT state, scheduled_at AT TIME ZONE 'UTC', round(extract(epoch FROM scheduled_at - created_at))::bigint
        FROM sweephand.job ORDER BY id""").fetchall()
    assert [state for state, _, _ in rows] == ["available", "scheduled", "scheduled", "available"]
    assert rows[0][1].replace(tzinfo=UTC) == LORD_HOWE
    assert rows[1][1] == datetime(2999, 1, 1)  # noqa: DTZ001 - a timestamp without a time zone
    assert [seconds for _, _, seconds in rows[2:]] == [36_500 * 86_400, 0]


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ArgumentsError, match="no time zone; pass an aware datetime"):
        mend.at(datetime(2026, 11, 30))  # noqa: DTZ001 - what is refused


def test_something_that_is_no_connection_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="got str; pass a SQLAlchemy Session"):
        enqueue("postgresql://", mend, product_id=7)  # type: ignore[call-overload]  # what is refused


def test_send_commits_a_job_in_a_transaction_of_its_own(
    connection: psycopg.Connection, module_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", module_database_url)

    first = mend.send(7)
    second = mend.send(product_id=7)

    assert not first.is_duplicate
    assert second == EnqueueOutcome(first.job_id, is_duplicate=True)
    assert job_count(connection) == 1


def test_send_without_a_database_url_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)

    with pytest.raises(SettingsError, match="needs DATABASE_URL"):
        mend.send(7)


def test_refused_arguments_leave_the_transaction_usable(connection: psycopg.Connection) -> None:
    @App("other").job()
    def note(text: str) -> None:
        pass

    with connection.transaction():
        with pytest.raises(ArgumentsError, match="text: a NUL character"):
            enqueue(connection, note, text="\0")
        enqueue(connection, note, text="fine")

    assert job_count(connection) == 1


def test_equal_jobs_are_allowed_where_the_kind_says_so(connection: psycopg.Connection) -> None:
    @App("other").job(unique=None)
    def note(text: str) -> None:
        pass

    with connection.transaction():
        outcomes = [enqueue(connection, note, text="same") for _ in range(3)]

    assert len({outcome.job_id for outcome in outcomes}) == 3
    assert not any(outcome.is_duplicate for outcome in outcomes)


def test_a_finished_job_is_no_duplicates_twin(module_database_url: str, connection: psycopg.Connection) -> None:
    with open_connection(module_database_url) as caller, caller.transaction():
        first = enqueue(caller, mend, product_id=7)
    connection.execute("UPDATE sweephand.job SET state = 'completed', finished_at = now()")

    with connection.transaction():
        second = enqueue(connection, mend, product_id=7)

    assert not second.is_duplicate
    assert second.job_id > first.job_id
