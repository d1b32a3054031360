"""Invariant 1: a domain row and its job exist both or neither, whatever the driver and whatever goes wrong."""

import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import psycopg
import pytest

from tests.engine.callers import DRIVERS, Caller, mend
from tests.support.processes import RunningCommand
from tests.support.waiting import until

INSERT = "INSERT INTO product VALUES (7)"


class BrokenError(Exception):
    pass


@pytest.fixture(params=DRIVERS)
def caller(request: pytest.FixtureRequest, module_database_url: str) -> Iterator[Caller]:
    with DRIVERS[request.param](module_database_url, None) as caller:
        yield caller


def work_and_break(caller: Caller, around: AbstractContextManager[None]) -> None:
    with around:
        caller.execute(INSERT)
        caller.enqueue(mend, 7)
        raise BrokenError


def enqueue_and_overflow(caller: Caller) -> None:
    with caller.transaction():
        caller.enqueue(mend, 7)
        caller.execute("INSERT INTO product VALUES (2147483648::bigint)")


def counts(connection: psycopg.Connection) -> tuple[int, int]:
    """Return how many domain rows and how many jobs others see."""
    row = connection.execute("SELECT (SELECT count(*) FROM product), (SELECT count(*) FROM sweephand.job)").fetchone()
    assert row is not None
    return (int(row[0]), int(row[1]))


def test_every_way_out_of_a_transaction_keeps_both_or_neither(caller: Caller, connection: psycopg.Connection) -> None:
    with pytest.raises(BrokenError):
        work_and_break(caller, caller.transaction())
    after_an_exception = counts(connection)

    with caller.transaction():
        caller.execute(INSERT)
        with pytest.raises(BrokenError):
            work_and_break(caller, caller.savepoint())
    after_a_savepoint = counts(connection)

    with caller.transaction():
        caller.execute(INSERT)
        outcome = caller.enqueue(mend, 7)
        before_commit = counts(connection)
    after_commit = counts(connection)

    assert after_an_exception == (0, 0)
    assert after_a_savepoint == (1, 0)
    assert before_commit == (1, 0)
    assert after_commit == (2, 1)
    assert not outcome.is_duplicate


def test_the_domain_rows_fault_takes_the_job_back(caller: Caller, connection: psycopg.Connection) -> None:
    with pytest.raises(Exception, match="out of range"):
        enqueue_and_overflow(caller)

    assert counts(connection) == (0, 0)


def test_sigkill_of_the_caller_before_its_commit_leaves_neither(
    connection: psycopg.Connection, module_database_url: str, tmp_path: Path
) -> None:
    process = RunningCommand.start(
        [sys.executable, "-m", "tests.engine.test_enqueue_both_or_neither", module_database_url],
        env={"PYTHONPATH": str(Path.cwd())},
        log_path=tmp_path / "callers.log",
    )
    try:
        process.wait_for_log("all have enqueued", deadline_seconds=40)

        process.kill()
        process.wait()
    finally:
        process.destroy()

    until(lambda: sessions(connection) == 0, message="PostgreSQL has noticed")
    assert counts(connection) == (0, 0)


def sessions(connection: psycopg.Connection) -> int:
    row = connection.execute("""
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'""").fetchone()
    assert row is not None
    return int(row[0])


def enqueue_with_all_and_wait(database_url: str) -> None:
    """Hold an open transaction in each driver, with a domain row and a job of its own, until killed."""
    with ExitStack() as open_callers:
        for number, open_caller in enumerate(DRIVERS.values()):
            caller = open_callers.enter_context(open_caller(database_url, None))
            open_callers.enter_context(caller.transaction())
            caller.execute(INSERT)
            caller.enqueue(mend, number)
        sys.stdout.write("all have enqueued\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    enqueue_with_all_and_wait(sys.argv[1])
