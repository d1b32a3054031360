"""The local stack: real processes, started together, ended together."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psycopg
import pytest

from sweephand import SweephandError
from sweephand.dev import LocalStack
from tests.support.processes import Commands
from tests.support.waiting import until

APP = "tests.cli.apps:app"


class Lines:
    """Collect what the processes write."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def add(self, name: str, line: str) -> None:
        self.seen.append((name, line))

    def of(self, name: str) -> str:
        return "\n".join(line for who, line in self.seen if who == name)


@pytest.fixture
def lines() -> Iterator[Lines]:
    lines = Lines()
    yield lines
    sys.stdout.writelines(f"{name} | {line}\n" for name, line in lines.seen)


def _lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_stack_is_ready_when_started_and_gone_when_stopped(database_url: str, lines: Lines) -> None:
    stack = LocalStack(APP, on_line=lines.add, database_url=database_url)

    addresses = stack.start()
    pids = stack.pids()
    served_by = httpx.get(f"{addresses.api_url}/pid").json()
    codes = stack.stop()

    assert list(pids) == ["api", "worker", "dispatcher"]
    assert served_by == pids["api"]
    assert codes == {"api": 0, "worker": 0, "dispatcher": 0}
    assert not any(map(_lives, pids.values()))
    assert "app_migrated app=shop" in lines.of("migrate")


def test_a_stack_does_the_work(database_url: str, lines: Lines) -> None:
    stack = LocalStack(APP, on_line=lines.add, database_url=database_url)
    stack.start()
    try:
        with psycopg.connect(database_url, autocommit=True) as connection:

            def completed() -> bool:
                row = connection.execute("SELECT count(*) FROM sweephand.job WHERE state = 'completed'").fetchone()
                return row == (2,)

            until(completed, message="the jobs of the sweep's two rows are completed")
    finally:
        stack.stop()

    assert "dispatched sweep=untidy_shelves" in lines.of("dispatcher")
    assert "kind=tidy_shelf attempt=1 shelf_id=1: started" in lines.of("worker")


def test_a_stack_whose_process_dies_at_its_start_says_which_and_leaves_nothing(database_url: str, lines: Lines) -> None:
    stack = LocalStack("tests.cli.apps:make_app_that_ends_its_worker", on_line=lines.add, database_url=database_url)

    with pytest.raises(SweephandError, match=r"^sweephand worker ended with exit code -9; its lines say why$"):
        stack.start()

    assert stack.pids() == {}


def test_a_stack_whose_migration_fails_does_not_start(lines: Lines) -> None:
    stack = LocalStack(APP, on_line=lines.add, database_url="postgresql://127.0.0.1:1/none")

    with pytest.raises(SweephandError, match=r"^sweephand migrate ended with exit code 1; its lines say why$"):
        stack.start()

    assert "Connection refused" in lines.of("migrate")


def test_dev_prefixes_lines_and_ends_all_on_ctrl_c(commands: Commands) -> None:
    dev = commands.start("dev", "--app", APP, "--api-port", "0")
    dev.wait_for_log("ready; Ctrl-C ends all of it", deadline_seconds=90)
    url = dev.wait_for_log("dev        | api ").split()[-1]
    assert httpx.get(f"{url}/pid").status_code == 200

    dev.kill(signal.SIGINT)

    assert dev.wait(deadline_seconds=40) == 0
    assert "worker     | " in dev.log
    assert "dispatcher | " in dev.log
    assert "\x1b[" not in dev.log
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/pid")


def test_dev_ends_when_one_process_ends(commands: Commands) -> None:
    dev = commands.start("dev", "--app", APP, "--api-port", "0")
    dev.wait_for_log("ready; Ctrl-C ends all of it", deadline_seconds=90)
    url = dev.wait_for_log("dev        | api ").split()[-1]

    os.kill(httpx.get(f"{url}/pid").json(), signal.SIGKILL)

    assert dev.wait(deadline_seconds=40) == 1
    assert "api ended with exit code -9; stopping the others" in dev.log


def test_processes_end_with_a_parent_that_is_killed(commands: Commands) -> None:
    dev = commands.start("dev", "--app", APP, "--api-port", "0")
    dev.wait_for_log("ready; Ctrl-C ends all of it", deadline_seconds=90)
    children = _children(dev.pid)

    dev.kill(signal.SIGKILL)

    try:
        until(lambda: not any(map(_lives, children)), message="all processes end")
    finally:
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_dev_brings_its_own_postgres_when_there_is_none(commands: Commands) -> None:
    with TemporaryDirectory() as directory:
        # As root, PostgreSQL runs as somebody else, who has to get through to its data.
        Path(directory).chmod(0o755)
        data = Path(directory, "data")
        dev = commands.start("dev", "--app", APP, "--api-port", "0", "--data-dir", str(data), env={"DATABASE_URL": ""})
        dev.wait_for_log("database  postgresql://postgres@/postgres?host=", deadline_seconds=90)

        dev.kill(signal.SIGTERM)

        assert dev.wait(deadline_seconds=40) == 0
        assert (data / "PG_VERSION").exists()


def _children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True)
    return [int(line) for line in found.stdout.split()]
