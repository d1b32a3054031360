"""Bring the database's schema to the version that this release needs."""

from dataclasses import dataclass
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from sweephand.model.errors import DatabaseError
from sweephand.postgres.connect import conninfo, sqlalchemy_url, unreachable
from sweephand.postgres.schema import expected_version

# Any fixed number: it only has to be the same in every release, so that two migrations wait for each other.
_ADVISORY_LOCK = 7_305_921_466_020_131


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """Say which schema version was found (None: no schema) and which one there is now."""

    before: str | None
    after: str


def migrate(database_url: str) -> MigrationReport:
    """Apply what is missing, in one transaction; several at once wait for each other, and the later ones find nothing to do.

    Raises:
        DatabaseError: PostgreSQL cannot be reached.
        SettingsError: the URL is no PostgreSQL URL.
    """
    conninfo(database_url, application_name="sweephand migrate")  # refuses a bad URL in our own words
    engine = create_engine(sqlalchemy_url(database_url), poolclass=NullPool)
    try:
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _ADVISORY_LOCK})
            connection.execute(text("CREATE SCHEMA IF NOT EXISTS sweephand"))
            before = _applied(connection.execute(text("SELECT to_regclass('sweephand.schema_version')")).scalar(), connection)
            config = Config()
            config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
            config.attributes["connection"] = connection
            if before is None or before < expected_version():
                command.upgrade(config, "head")
            return MigrationReport(before=before, after=max(before or "", expected_version()))
    except DBAPIError as error:
        match error.orig:
            case psycopg.errors.InsufficientPrivilege():
                refusal = str(error.orig).splitlines()[0]
                raise DatabaseError(f"PostgreSQL refuses: {refusal}; migrate as a user that owns the database") from error
            case psycopg.OperationalError():
                raise DatabaseError(unreachable(error.orig)) from error
            case _:
                raise
    finally:
        engine.dispose()


def _applied(table: object, connection: Connection) -> str | None:
    if table is None:
        return None
    found = connection.execute(text("SELECT max(version_num) FROM sweephand.schema_version")).scalar()
    return None if found is None else str(found)
