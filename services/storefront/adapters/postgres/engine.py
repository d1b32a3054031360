"""Connections to PostgreSQL that survive its restarts, its failovers and PgBouncer."""

from sqlalchemy import Engine, ExceptionContext, create_engine, event, make_url

POOL_SIZE = 20
READ_ONLY_SQLSTATE = "25006"


def postgres_engine(database_url: str) -> Engine:
    """Return a pool of at most 20 connections to `database_url`; each connects when it is first needed."""
    engine = create_engine(
        make_url(database_url).set(drivername="postgresql+psycopg"),
        pool_size=POOL_SIZE,
        max_overflow=0,
        pool_timeout=5,
        pool_pre_ping=True,
        # An error's text gets into logs, where customers' e-mail addresses must not be.
        hide_parameters=True,
        connect_args={
            "application_name": "storefront",
            "connect_timeout": 5,
            "keepalives_idle": 20,
            # PgBouncer in transaction mode may run the next transaction where the statement was never prepared.
            "prepare_threshold": None,
        },
    )
    event.listen(engine, "handle_error", _discard_read_only_connection)
    return engine


def _discard_read_only_connection(context: ExceptionContext) -> None:
    """Close a connection that leads to what a failover made a standby, so that the pool finds the primary."""
    if getattr(context.original_exception, "sqlstate", None) == READ_ONLY_SQLSTATE:
        context.is_disconnect = True
