"""Bring the shop's schema to the newest version."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import NullPool, create_engine, make_url, text

MIGRATIONS = Path(__file__).parent / "migrations"


def migrate(database_url: str) -> None:
    """Apply the migrations that are missing, in one transaction. Several at once wait for each other."""
    engine = create_engine(make_url(database_url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('storefront.migrate', 0))"))
        connection.execute(text("CREATE SCHEMA IF NOT EXISTS storefront"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
