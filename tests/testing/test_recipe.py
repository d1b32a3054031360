"""The guide's way to put a whole test into one transaction, with code that commits as it always does."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, NullPool, create_engine, text
from sqlalchemy.orm import Session, sessionmaker

from sweephand import App, current_job, enqueue
from sweephand.model.outcomes import AttemptOutcome
from sweephand.postgres.connect import sqlalchemy_url
from sweephand.testing import assert_enqueued, drain, perform


@pytest.fixture
def engine(database_url: str) -> Engine:
    engine = create_engine(sqlalchemy_url(database_url), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE account (id integer PRIMARY KEY, cents integer NOT NULL CHECK (cents >= 0))"))
        connection.execute(text("INSERT INTO account VALUES (1, 0)"))
    return engine


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        transaction = connection.begin()
        yield connection
        transaction.rollback()


@pytest.fixture
def app(connection: Connection) -> App:
    return make_bank(sessionmaker(connection, join_transaction_mode="create_savepoint"))


def make_bank(new_session: sessionmaker[Session]) -> App:
    app = App("bank")

    @app.job(unique=None)
    def credit(cents: int) -> None:
        with new_session() as session, session.begin():
            session.execute(text("UPDATE account SET cents = cents + :cents"), {"cents": cents})
            if cents > 0:
                enqueue(session, app.jobs["tell"], cents=cents)
            current_job().complete(session)

    @app.job(unique=None)
    def tell(cents: int) -> None:
        pass

    return app


def balance(connection: Connection) -> int:
    return int(connection.execute(text("SELECT cents FROM account")).scalar_one())


def test_a_job_that_commits_and_completes_itself_does_so_within_the_test(connection: Connection, app: App) -> None:
    attempt = perform(connection, app.jobs["credit"], cents=5)

    assert attempt.outcome is AttemptOutcome.COMPLETED
    assert balance(connection) == 5
    assert_enqueued(connection, app.jobs["tell"], cents=5)


def test_a_job_whose_commit_fails_leaves_neither_its_writes_nor_its_completion(connection: Connection, app: App) -> None:
    enqueue(connection, app.jobs["credit"], cents=-5)

    report = drain(connection, app, on_failure="retry")

    assert report.count(AttemptOutcome.RETRIED) == 1
    assert balance(connection) == 0
    assert_enqueued(connection, app.jobs["credit"], cents=-5)


def test_nothing_is_left_when_the_test_is_over(engine: Engine) -> None:
    with engine.connect() as connection:
        transaction = connection.begin()
        perform(connection, make_bank(sessionmaker(connection, join_transaction_mode="create_savepoint")).jobs["credit"], cents=5)
        transaction.rollback()

    with engine.begin() as connection:
        assert balance(connection) == 0
        assert connection.execute(text("SELECT count(*) FROM sweephand.job")).scalar_one() == 0
        assert connection.execute(text("SELECT count(*) FROM sweephand.job_attempt")).scalar_one() == 0
