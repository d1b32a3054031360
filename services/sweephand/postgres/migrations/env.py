"""Run alembic on the connection that migrate.py hands over; nothing is configured from files or the environment."""

from alembic import context
from sqlalchemy import Connection

connection = context.config.attributes["connection"]
if not isinstance(connection, Connection):
    raise TypeError(f"alembic is run by sweephand.postgres.migrate, which hands over a Connection; got {connection!r}")
context.configure(
    connection=connection,
    version_table="schema_version",
    version_table_schema="sweephand",
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
