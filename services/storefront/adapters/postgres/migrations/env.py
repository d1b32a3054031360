"""Run alembic on the connection that migrate.py hands over; the versions on record lie in the shop's own schema."""

from alembic import context

from storefront.adapters.postgres.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="schema_version",
    version_table_schema="storefront",
)
context.run_migrations()
