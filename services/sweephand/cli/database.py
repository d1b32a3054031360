"""Give an operator's command the database that DATABASE_URL names."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from sweephand.postgres.operator_session import operator_session
from sweephand.settings import load_settings


@contextmanager
def open_database() -> Iterator[psycopg.Connection]:
    """Open a connection for one command, which logs nothing: what it has to say is its answer.

    Raises:
        SettingsError: DATABASE_URL, or another setting, is missing or wrong.
        DatabaseError: PostgreSQL cannot be reached.
        NotMigratedError: it has no schema, or an old one.
    """
    with operator_session(load_settings().database_url) as connection:
        yield connection
