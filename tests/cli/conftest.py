from collections.abc import Iterator

import psycopg
import pytest

from tests.support.jobs import open_connection
from tests.support.operator import Operator


@pytest.fixture
def operator(database_url: str) -> Operator:
    """Somebody at a command line, on this test's database."""
    return Operator(database_url)


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection to this test's database, to lay out what is there and to look at what became of it."""
    with open_connection(database_url) as opened:
        yield opened
