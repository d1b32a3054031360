"""The shop's own tables, beside the engine's."""

import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg.errors import CheckViolation, ForeignKeyViolation

from storefront.adapters.postgres.engine import postgres_engine
from storefront.adapters.postgres.migrate import migrate
from storefront.adapters.postgres.tables import metadata
from sweephand.postgres.connect import connect


def test_the_migrations_make_the_tables_that_the_code_expects(empty_database_url: str) -> None:
    migrate(empty_database_url)

    engine = postgres_engine(empty_database_url)
    with engine.connect() as connection:
        options = {
            "include_schemas": True,
            "include_name": lambda name, kind, _: kind != "schema" or name == "storefront",
            "version_table_schema": "storefront",
            "version_table": "schema_version",
        }
        difference = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    engine.dispose()
    assert difference == []


def test_migrating_again_changes_nothing(empty_database_url: str) -> None:
    migrate(empty_database_url)

    migrate(empty_database_url)

    with connect(empty_database_url, application_name="storefront tests") as connection:
        assert connection.execute("SELECT version_num FROM storefront.schema_version").fetchall() == [("0002",)]


def test_several_migrations_at_once_wait_for_each_other(empty_database_url: str) -> None:
    barrier = threading.Barrier(4)
    failures: list[Exception] = []

    def migrate_at_once() -> None:
        barrier.wait()
        try:
            migrate(empty_database_url)
        except Exception as error:  # noqa: BLE001 - whatever it is, the assertion below shows it
            failures.append(error)

    threads = [threading.Thread(target=migrate_at_once) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []


def test_the_table_itself_refuses_a_negative_price(empty_database_url: str) -> None:
    migrate(empty_database_url)

    with (
        connect(empty_database_url, application_name="storefront tests") as connection,
        pytest.raises(CheckViolation),
    ):
        connection.execute("INSERT INTO storefront.product (name, description, price_cents) VALUES ('Lamp', '', -1)")


def test_the_table_itself_refuses_an_order_of_nothing(empty_database_url: str) -> None:
    migrate(empty_database_url)

    with connect(empty_database_url, application_name="storefront tests") as connection:
        connection.execute("INSERT INTO storefront.product (name, description, price_cents) VALUES ('Lamp', '', 1)")
        with pytest.raises(CheckViolation):
            connection.execute(
                "INSERT INTO storefront.customer_order (product_id, quantity, email) SELECT id, 0, 'a@b' FROM storefront.product"
            )


def test_the_table_itself_refuses_an_order_of_a_product_that_does_not_exist(empty_database_url: str) -> None:
    migrate(empty_database_url)

    with (
        connect(empty_database_url, application_name="storefront tests") as connection,
        pytest.raises(ForeignKeyViolation),
    ):
        connection.execute("INSERT INTO storefront.customer_order (product_id, quantity, email) VALUES (404, 1, 'a@b')")
