"""The commands: clear errors, exit codes, and nothing loaded that a process does not need."""

import json
import secrets
import subprocess
import sys
from importlib import metadata
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from sweephand.postgres.embedded import EmbeddedPostgres
from tests.support.processes import Commands

APP = "tests.cli.apps:app"
NOWHERE = "postgresql://shop:swordfish@127.0.0.1:1/none"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sweephand", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_version_is_that_of_the_distribution() -> None:
    assert _run("--version").stdout == f"sweephand {metadata.version('sweephand')}\n"


def test_help_names_every_command() -> None:
    listed = _run("--help").stdout

    assert all(f"\n  {name} " in listed for name in ("api", "worker", "dispatcher", "migrate", "dev", "demo"))


def test_an_unknown_command_is_wrong_usage() -> None:
    assert _run("swep").returncode == 2


@pytest.mark.parametrize("name", ["api", "worker", "dispatcher"])
def test_wrong_settings_are_all_named_and_exit_1(commands: Commands, name: str) -> None:
    wrong = {"SWEEPHAND_WORKER_THREADS": "abc", "SWEEPHAND_METRICS_PORT": "x", "DATABASE_URL": ""}

    command = commands.start(name, app=APP, env=wrong)

    assert command.wait() == 1
    assert command.log.splitlines() == [
        "Error: DATABASE_URL: is not set; it must be of the form postgresql://user:password@host:5432/name",
        "Error: SWEEPHAND_METRICS_PORT=x: must be a whole number from 0 to 65535",
        "Error: SWEEPHAND_WORKER_THREADS=abc: must be a whole number from 1 to 256",
    ]


@pytest.mark.parametrize("name", ["api", "worker", "dispatcher", "dev"])
def test_without_an_application_it_says_how_to_give_one(commands: Commands, name: str) -> None:
    command = commands.start(name)

    assert command.wait() == 2
    assert "Error: no application; give --app module:attribute or set SWEEPHAND_APP\n" in command.log


def test_an_application_that_does_not_exist_is_one_line(commands: Commands) -> None:
    command = commands.start("worker", app="nowhere.app:app")

    assert command.wait() == 1
    assert command.log.startswith("Error: --app: no module nowhere.app ")
    assert len(command.log.splitlines()) == 1


def test_the_option_wins_over_the_variable(commands: Commands) -> None:
    command = commands.start("worker", "--app", "nowhere.else:app", app=APP)

    assert command.wait() == 1
    assert "no module nowhere.else" in command.log


def test_a_near_miss_among_the_variables_is_warned_of(commands: Commands) -> None:
    command = commands.start("migrate", env={"SWEEPHAND_WORKER_THREAD": "5", "SWEEPHAND_API_SERVICE_HOST": "10.0.0.7"})

    assert command.wait() == 0
    warnings = [line for line in command.log.splitlines() if " warning " in line]
    assert len(warnings) == 1
    assert warnings[0].endswith("setting_ignored variable=SWEEPHAND_WORKER_THREAD meant=SWEEPHAND_WORKER_THREADS")


def test_migrate_makes_the_schema_and_then_the_applications(commands: Commands, empty_database_url: str) -> None:
    command = commands.start("migrate", app=APP, env={"DATABASE_URL": empty_database_url})

    assert command.wait() == 0
    assert "schema_migrated before=null after=" in command.log
    assert "app_migrated app=shop" in command.log
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute(
            "SELECT to_regclass('sweephand.job') IS NOT NULL, to_regclass('shelf') IS NOT NULL"
        ).fetchone() == (
            True,
            True,
        )


def test_migrate_again_finds_nothing_to_do(commands: Commands) -> None:
    command = commands.start("migrate")

    assert command.wait() == 0
    assert "schema_migrated before=0" in command.log


def test_migrate_waits_for_a_database_that_comes_up(own_postgres: EmbeddedPostgres, commands: Commands) -> None:
    url = own_postgres.start()
    own_postgres.stop()
    command = commands.start("migrate", "--wait-seconds", "60", env={"DATABASE_URL": url})
    command.wait_for_log("waiting_for_database")

    assert own_postgres.start() == url

    assert command.wait() == 0
    assert "schema_migrated before=null after=" in command.log


def test_migrate_gives_up_waiting_for_a_database(commands: Commands) -> None:
    command = commands.start("migrate", "--wait-seconds", "0.5", env={"DATABASE_URL": NOWHERE})

    assert command.wait() == 1
    assert command.log.splitlines()[-1].startswith("Error: PostgreSQL does not answer: ")


def test_migrate_without_a_database_is_one_line_without_secrets(commands: Commands) -> None:
    command = commands.start("migrate", env={"DATABASE_URL": NOWHERE})

    assert command.wait() == 1
    assert command.log.startswith("Error: PostgreSQL does not answer: ")
    assert "Connection refused" in command.log
    assert len(command.log.splitlines()) == 1
    assert "swordfish" not in command.log


def test_migrate_as_someone_without_rights_is_one_line(commands: Commands, empty_database_url: str) -> None:
    parts = urlsplit(empty_database_url)
    reader = f"reader_{secrets.token_hex(4)}"
    as_reader = parts._replace(netloc=f"{reader}:swordfish@{parts.netloc.rpartition('@')[2]}").geturl()
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(SQL("CREATE ROLE {} LOGIN PASSWORD 'swordfish'").format(Identifier(reader)))
        try:
            command = commands.start("migrate", env={"DATABASE_URL": as_reader})

            assert command.wait() == 1
        finally:
            connection.execute(SQL("DROP ROLE {}").format(Identifier(reader)))
    assert command.log.startswith("Error: PostgreSQL refuses: permission denied for database")
    assert len(command.log.splitlines()) == 1


def test_logs_are_json_when_asked_for(commands: Commands) -> None:
    command = commands.start("migrate", env={"SWEEPHAND_LOG_FORMAT": "json"})

    assert command.wait() == 0
    assert json.loads(command.log)["event"] == "schema_migrated"


def test_what_nobody_caught_is_logged_in_the_logs_own_form(commands: Commands) -> None:
    command = commands.start("migrate", app="tests.cli.apps:failing", env={"SWEEPHAND_LOG_FORMAT": "json"})

    assert command.wait() == 1
    lines = [json.loads(line) for line in command.log.splitlines()]
    assert [(line["level"], line["event"]) for line in lines[1:]] == [
        ("error", "thread_failed"),
        ("critical", "process_failed"),
    ]
    assert lines[1]["thread"] == "helper"
    assert lines[2]["exception"].endswith("ZeroDivisionError: by hand")


@pytest.mark.parametrize(
    ("process", "unneeded"),
    [
        ("sweephand.worker.process", {"fastapi", "starlette", "uvicorn", "kopf", "aiohttp", "alembic", "sqlalchemy"}),
        ("sweephand.dispatcher.process", {"fastapi", "starlette", "uvicorn", "dramatiq", "alembic"}),
        ("sweephand.web.process", {"dramatiq", "kopf", "aiohttp", "alembic"}),
    ],
)
def test_a_process_loads_nothing_of_the_others(process: str, unneeded: set[str]) -> None:
    script = f"import sys, sweephand.cli.start, {process}; print(*{{name.partition('.')[0] for name in sys.modules}})"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert unneeded & set(loaded) == set()
