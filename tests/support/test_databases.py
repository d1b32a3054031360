import pytest

from sweephand.postgres.connect import connect
from tests.support.databases import Databases, sever_connections


def _names_of_tables(database_url: str) -> set[str]:
    with connect(database_url, application_name="test") as connection:
        rows = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'sweephand'").fetchall()
    return {str(name) for (name,) in rows}


def test_a_test_gets_a_migrated_database_without_jobs(database_url: str) -> None:
    assert {"job", "sweep", "tick", "leader", "worker", "queue"} <= _names_of_tables(database_url)

    with connect(database_url, application_name="test") as connection:
        row = connection.execute("SELECT count(*) FROM sweephand.job").fetchone()

    assert row == (0,)


def test_two_databases_share_nothing(databases: Databases, database_url: str, empty_database_url: str) -> None:
    assert _names_of_tables(empty_database_url) == set()
    assert databases.url_of("other") != database_url


def test_a_migration_that_fails_is_tried_again_by_the_next_test(databases: Databases) -> None:
    run = Databases(databases.server_url, run_id=f"{databases.run_id}f")
    tried: list[str] = []

    def migrate(database_url: str) -> None:
        tried.append(database_url)
        if len(tried) == 1:
            raise RuntimeError("the first try fails")
        with connect(database_url, application_name="test") as connection:
            connection.execute("CREATE SCHEMA sweephand CREATE TABLE job ()")

    try:
        with pytest.raises(RuntimeError, match="the first try fails"):
            run.create_clone(migrate)

        assert _names_of_tables(run.create_clone(migrate)) == {"job"}
        assert _names_of_tables(run.create_clone(migrate)) == {"job"}
        assert len(tried) == 2
    finally:
        run.drop_all()


def test_connections_can_be_severed(database_url: str) -> None:
    with connect(database_url, application_name="test") as connection:
        connection.execute("SELECT 1")

        severed = sever_connections(database_url)

        assert severed == 1
