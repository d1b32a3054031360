"""A database for a whole module: for tests that need a dozen runs of one thing, and clean up what they see."""

from collections.abc import Iterator

import psycopg
import pytest

from sweephand.postgres.migrate import migrate
from tests.support.databases import Databases
from tests.support.jobs import open_connection


@pytest.fixture(scope="module")
def module_database_url(databases: Databases) -> Iterator[str]:
    """The URL of this module's own database, migrated, with a table `product`."""
    url = databases.create_clone(migrate)
    with open_connection(url) as connection:
        connection.execute("CREATE TABLE product (id int)")
    yield url
    databases.drop(url)


@pytest.fixture
def connection(module_database_url: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection to the module's database, which has neither products nor jobs."""
    with open_connection(module_database_url) as connection:
        connection.execute("DELETE FROM product")
        connection.execute("DELETE FROM sweephand.job")
        yield connection
