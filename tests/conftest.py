"""Fixtures for all tests: a PostgreSQL for the run, a database for each test, real processes.

One server serves the run and all its xdist workers: the one that DATABASE_URL names, or an embedded one that starts when it is
first needed and ends with the run. `database_url` is all that most tests need.
"""

import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import hypothesis
import pytest

from sweephand.postgres.embedded import EmbeddedPostgres, database_url_or_embedded
from tests.support.databases import Databases
from tests.support.network import DatabaseGate
from tests.support.processes import Commands


class _WorkerNode(Protocol):
    """Be what is used of an xdist worker as its controller sees it."""

    config: pytest.Config
    workerinput: dict[str, object]


_RESOURCES = pytest.StashKey[ExitStack]()
_DATABASES = pytest.StashKey[Databases]()
_SERVER_SETTINGS = {"log_checkpoints": "off", "max_connections": "300"}


def pytest_configure(config: pytest.Config) -> None:
    # A machine of two cores that runs everything at once stalls now and then; the tests' own time limit is enough.
    hypothesis.settings.register_profile("sweephand", deadline=None, print_blob=True)
    hypothesis.settings.load_profile("sweephand")
    config.stash[_RESOURCES] = ExitStack()
    given: dict[str, object] = getattr(config, "workerinput", {})
    if "server_url" in given:
        config.stash[_DATABASES] = Databases(str(given["server_url"]), run_id=str(given["run_id"]))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: _WorkerNode) -> None:
    databases = _databases_of_run(node.config)
    node.workerinput.update(server_url=databases.server_url, run_id=databases.run_id)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_RESOURCES].close()


def _databases_of_run(config: pytest.Config) -> Databases:
    if _DATABASES not in config.stash:
        resources = config.stash[_RESOURCES]
        server_url = resources.enter_context(database_url_or_embedded(is_durable=False, settings=_SERVER_SETTINGS))
        databases = Databases(server_url, run_id=secrets.token_hex(4))
        resources.callback(databases.drop_all)
        config.stash[_DATABASES] = databases
    return config.stash[_DATABASES]


@pytest.fixture(scope="session")
def databases(pytestconfig: pytest.Config) -> Databases:
    """The databases of this run, for tests that need more than one or one of a special make."""
    return _databases_of_run(pytestconfig)


@pytest.fixture
def database_url(databases: Databases) -> Iterator[str]:
    """The URL of this test's own database, migrated, otherwise empty."""
    from sweephand.postgres.migrate import migrate

    url = databases.create_clone(migrate)
    yield url
    databases.drop(url)


@pytest.fixture
def empty_database_url(databases: Databases) -> Iterator[str]:
    """The URL of this test's own database without sweephand's schema."""
    url = databases.create_empty()
    yield url
    databases.drop(url)


@pytest.fixture
def database_gate(database_url: str) -> Iterator[DatabaseGate]:
    """A way to this test's database that can be frozen, cut and closed."""
    gate = DatabaseGate(database_url)
    yield gate
    gate.close()


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """A server for this test alone, not started: for tests that stop, crash, freeze or configure it."""
    server = EmbeddedPostgres(is_durable=False)
    yield server
    server.close()


@pytest.fixture
def commands(database_url: str, tmp_path: Path) -> Iterator[Commands]:
    """Start `sweephand` processes on this test's database; a failing test shows their logs."""
    started = Commands(tmp_path, database_url=database_url)
    yield started
    sys.stdout.write(started.destroy_all())
