from collections.abc import Iterator

import psycopg
import pytest


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    """A transaction that is rolled back after the test."""
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE product (id integer PRIMARY KEY, is_published boolean NOT NULL DEFAULT false)")
        yield connection
        connection.rollback()
