"""Compare the database's schema with the one that this version needs."""

from pathlib import Path

import psycopg

from sweephand.model.errors import NotMigratedError

APPLIED = "SELECT max(version_num) FROM sweephand.schema_version"
_VERSIONS = Path(__file__).parent / "migrations" / "versions"


def expected_version() -> str:
    """Return the newest schema version that this release knows, such as `0001`."""
    return max(path.name[1:5] for path in _VERSIONS.glob("v[0-9]*.py"))


def check_schema(connection: psycopg.Connection) -> str | None:
    """Return None if the schema fits, else one line that says what is missing and what to run.

    A schema that is newer than this release fits: migrations only expand.
    """
    try:
        row = connection.execute(APPLIED).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return misfit(None)
    return misfit(str(row[0]) if row is not None and row[0] is not None else None)


async def check_schema_async(connection: psycopg.AsyncConnection) -> str | None:
    """Return None if the schema fits, else what is missing; otherwise as `check_schema`."""
    try:
        row = await (await connection.execute(APPLIED)).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return misfit(None)
    return misfit(str(row[0]) if row is not None and row[0] is not None else None)


def require_schema(connection: psycopg.Connection) -> None:
    """Check the schema before a command that needs it.

    Raises:
        NotMigratedError: the schema is missing or behind.
    """
    problem = check_schema(connection)
    if problem is not None:
        raise NotMigratedError(problem)


def misfit(applied: str | None) -> str | None:
    """Return what is wrong with the applied schema version; None if nothing is."""
    expected = expected_version()
    if applied is None:
        return f"the database has no sweephand schema and needs version {expected}; run: sweephand migrate"
    if applied < expected:
        return f"the database's schema is at version {applied} and this release needs {expected}; run: sweephand migrate"
    return None
