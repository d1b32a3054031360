"""Read in one round trip whether the database can serve this release."""

from dataclasses import dataclass

import psycopg

from sweephand.postgres.schema import misfit

_HEALTH = """
SELECT (SELECT max(version_num) FROM sweephand.schema_version),
       pg_catalog.pg_is_in_recovery() OR pg_catalog.current_setting('transaction_read_only') = 'on'
"""


@dataclass(frozen=True, slots=True)
class DatabaseHealth:
    """Say what the database is like: its schema's version (None: none) and what does not fit, if it takes no writes."""

    schema_version: str | None
    schema_problem: str | None
    is_read_only: bool


def read_health(connection: psycopg.Connection) -> DatabaseHealth:
    """Return what the database is like; psycopg's own errors say that it cannot be asked. The connection is autocommit."""
    try:
        row = connection.execute(_HEALTH).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        row = None
    version = str(row[0]) if row is not None and row[0] is not None else None
    return DatabaseHealth(
        schema_version=version,
        schema_problem=misfit(version),
        is_read_only=bool(row[1]) if row is not None else False,
    )
