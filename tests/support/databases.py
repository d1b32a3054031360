"""Make a database for each test: a clone of one that was migrated once in the whole run."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg
from psycopg.sql import SQL, Identifier, Literal

from sweephand.postgres.connect import connect

# Any fixed number: the xdist workers of one run take turns at making the template.
_TEMPLATE_LOCK = 4_117_305_220_981

_APPLICATION_NAME = "sweephand tests"


@dataclass(frozen=True, slots=True)
class Databases:
    """Be the databases of one test run on one server; `server_url` names any database of it, as a user who may create more."""

    server_url: str
    run_id: str

    def url_of(self, name: str) -> str:
        """Return the URL of another database on the server."""
        return urlsplit(self.server_url)._replace(path=f"/{name}").geturl()

    def create_empty(self) -> str:
        """Make a database without anything in it and return its URL."""
        return self._create(template="template0")

    def create_clone(self, migrate: Callable[[str], object]) -> str:
        """Make a database in which `migrate` has been done and return its URL."""
        return self._create(template=self._template(migrate))

    def drop(self, database_url: str) -> None:
        """Delete a database, cutting whatever connections it has."""
        name = urlsplit(database_url).path.removeprefix("/")
        with connect(self.server_url, application_name=_APPLICATION_NAME) as connection:
            connection.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))

    def drop_all(self) -> None:
        """Delete whatever databases of this run there still are."""
        with connect(self.server_url, application_name=_APPLICATION_NAME) as connection:
            mine = connection.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [self._prefix])
            names = [str(name) for (name,) in mine.fetchall()]
        for name in names:
            self.drop(self.url_of(name))

    def _create(self, *, template: str) -> str:
        name = f"{self._prefix}{secrets.token_hex(4)}"
        with connect(self.server_url, application_name=_APPLICATION_NAME) as connection:
            # Copying files takes a quarter of the time that the default way through the log does.
            create = SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
            connection.execute(create.format(Identifier(name), Identifier(template)))
        return self.url_of(name)

    def _template(self, migrate: Callable[[str], object]) -> str:
        name = f"{self._prefix}template"
        with connect(self.server_url, application_name=_APPLICATION_NAME) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [_TEMPLATE_LOCK])
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if found is None:
                half_made = f"{name}_half_made"
                connection.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(half_made)))
                connection.execute(SQL("CREATE DATABASE {} TEMPLATE template0").format(Identifier(half_made)))
                migrate(self.url_of(half_made))
                # Renamed only now, so that a migration that fails is tried, and reported, again by the next test.
                connection.execute(SQL("ALTER DATABASE {} RENAME TO {}").format(Identifier(half_made), Identifier(name)))
        return name

    @property
    def _prefix(self) -> str:
        return f"sweephand_test_{self.run_id}_"


def is_listened_to(connection: psycopg.Connection) -> bool:
    """Tell whether somebody listens for notifications in this connection's database."""
    found = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%')"
    ).fetchone()
    return found == (True,)


def sever_connections(database_url: str) -> int:
    """Cut every other connection to a database, as a failing server does, and return how many there were."""
    name = urlsplit(database_url).path.removeprefix("/")
    with connect(database_url, application_name=_APPLICATION_NAME) as connection:
        others = SQL(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = {} AND pid <> pg_backend_pid()"
        )
        row = connection.execute(others.format(Literal(name))).fetchone()
    return 0 if row is None else int(row[0])
