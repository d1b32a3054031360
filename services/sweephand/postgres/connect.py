"""Open connections to PostgreSQL that notice a dead peer and ask nothing of the session."""

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sweephand.model.errors import DatabaseError, SettingsError

CONNECT_TIMEOUT_SECONDS = 5
_SCHEMES = ("postgresql://", "postgres://")


def conninfo(database_url: str, *, application_name: str) -> str:
    """Return a libpq connection string with timeouts and keepalives; what the URL says itself wins.

    A peer that vanished is noticed within about 20 s: keepalives for a silent connection, tcp_user_timeout for a
    statement that is not acknowledged.

    Raises:
        SettingsError: the URL is no PostgreSQL URL.
    """
    scheme, separator, rest = database_url.partition("://")
    plain = f"{scheme.partition('+')[0]}{separator}{rest}"
    if not plain.startswith(_SCHEMES):
        raise SettingsError("DATABASE_URL is not like postgresql://user:password@host:5432/database (its value is not shown)")
    try:
        chosen = conninfo_to_dict(plain)
    except psycopg.ProgrammingError as error:
        raise SettingsError("libpq cannot read DATABASE_URL (its value is not shown); check its percent-encoding") from error
    defaults = {
        "application_name": application_name,
        "connect_timeout": str(CONNECT_TIMEOUT_SECONDS),
        "keepalives_idle": "10",
        "keepalives_interval": "3",
        "keepalives_count": "3",
        "tcp_user_timeout": "15000",
    }
    return make_conninfo(**(defaults | {key: str(value) for key, value in chosen.items() if value is not None}))


def sqlalchemy_url(database_url: str) -> str:
    """Return the URL with psycopg as SQLAlchemy's driver."""
    _, separator, rest = database_url.partition("://")
    return f"postgresql+psycopg{separator}{rest}"


def connect(database_url: str, *, application_name: str, autocommit: bool = True, prepare: bool = True) -> psycopg.Connection:
    """Open a connection. `prepare=False` keeps server-side prepared statements off, for PgBouncer.

    Raises:
        DatabaseError: PostgreSQL cannot be reached or refuses.
    """
    try:
        return psycopg.connect(
            conninfo(database_url, application_name=application_name),
            autocommit=autocommit,
            prepare_threshold=1 if prepare else None,
        )
    except psycopg.OperationalError as error:
        raise DatabaseError(unreachable(error)) from error


async def connect_async(
    database_url: str, *, application_name: str, autocommit: bool = True, prepare: bool = True
) -> psycopg.AsyncConnection:
    """Open a connection for asyncio; otherwise as `connect`.

    Raises:
        DatabaseError: PostgreSQL cannot be reached or refuses.
    """
    try:
        return await psycopg.AsyncConnection.connect(
            conninfo(database_url, application_name=application_name),
            autocommit=autocommit,
            prepare_threshold=1 if prepare else None,
        )
    except psycopg.OperationalError as error:
        raise DatabaseError(unreachable(error)) from error


def plan_by_index(conn: psycopg.Connection) -> None:
    """Keep the plans of this connection from being those of a small table when the table has grown.

    A prepared statement keeps its plan. One that was made while the job table had a few pages reads the whole table, also
    when 50,000 jobs have come since, until autovacuum analyzes it: a claim of 500 took 150 ms instead of 7. For a connection
    whose every statement finds its rows by an index: sequential scans are turned off in its session. Behind a pooler,
    which gives another process's id than that of the server's process, no session is ours: there statements are not kept.
    """
    server = conn.execute("SELECT pg_backend_pid()").fetchone()
    if server == (conn.info.backend_pid,):
        conn.execute("SET enable_seqscan = off")
    else:
        conn.prepare_threshold = None


def is_connection_lost(error: psycopg.Error) -> bool:
    """Tell whether an error says nothing of the statement: the server is away, restarting or silent."""
    if isinstance(error, psycopg.OperationalError):
        return error.sqlstate is None or (error.sqlstate[:2] in {"08", "57"} and error.sqlstate != "57014")
    return isinstance(error, psycopg.InterfaceError)


def unreachable(error: psycopg.Error) -> str:
    """Return one line for people about a connection that failed."""
    lines = [line.strip(" \t-") for line in str(error).splitlines() if line.strip()]
    # libpq adds a hint in a line of its own, and with several hosts one line for each.
    reasons = [line for line in lines if "failed" in line or "FATAL" in line] or lines or [type(error).__name__]
    return f"PostgreSQL does not answer: {reasons[-1]}; check DATABASE_URL and that it runs"
